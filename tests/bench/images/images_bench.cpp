// tests/bench/images/images_bench.cpp -- seconds to decode and resize the given pictures on one
// thread, reading included, and a digest of the resized pixels for comparing with another program.
// Usage: images_bench MAX_TOKENS FILE...
#include <openssl/evp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "media/image.hpp"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  vlrerank::ImageOptions options;
  options.max_tokens = argc > 1 ? std::atoi(argv[1]) : options.max_tokens;
  auto* const digest = EVP_MD_CTX_new();
  EVP_DigestInit_ex(digest, EVP_sha256(), nullptr);
  std::chrono::duration<double> spent{0};
  for (int i = 2; i < argc; ++i) {
    auto const start = Clock::now();
    auto const loaded = vlrerank::load_image({argv[i], ""}, options);
    spent += Clock::now() - start;
    EVP_DigestUpdate(digest, loaded.resized.rgb.data(), loaded.resized.rgb.size());
  }
  std::vector<unsigned char> sum(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  EVP_DigestFinal_ex(digest, sum.data(), &size);
  EVP_MD_CTX_free(digest);
  std::printf("%.6f ", spent.count());
  for (unsigned i = 0; i < size; ++i) std::printf("%02x", sum[i]);
  std::printf("\n");
}
