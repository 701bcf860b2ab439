// bench/shards/shards_bench.cpp -- how fast rows come back from shards in the page cache, with
// every checksum verified, and what opening a large index costs.
//
//   shards_bench FOLDER [MIB]      makes a set of that size there (once), reads it in random order
//
// Two of them started together measure two ranks of a node.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "shards/shard.hpp"

namespace vlrerank {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

long peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// Eight documents of 100 tokens; with pictures, each shows one of its own of 256 x 256.
StoredRow make_row(std::mt19937_64& random, bool pictures) {
  StoredRow stored;
  stored.file = "bench.jsonl";
  for (int i = 0; i < 8; ++i) {
    EncodedPair pair;
    pair.label = i == 0 ? 1.0f : 0.0f;
    pair.ids.resize(100);
    for (auto& id : pair.ids) id = static_cast<std::int32_t>(random() % 150'000);
    if (pictures) {
      pair.media = {i};
      stored.row.media.push_back({{1, 16, 16}, false, {}});
      stored.pixels.emplace_back(256 * 256 * 3);
      for (std::size_t k = 0; k + 8 <= stored.pixels.back().size(); k += 8) {
        auto const value = random();
        std::copy_n(reinterpret_cast<std::uint8_t const*>(&value), 8, &stored.pixels.back()[k]);
      }
    }
    stored.row.pairs.push_back(std::move(pair));
  }
  return stored;
}

void make_set(std::string const& folder, std::int64_t mib, bool pictures) {
  if (std::filesystem::exists(folder + "/manifest.json")) return;
  std::filesystem::create_directories(folder);
  std::mt19937_64 random(1);
  std::vector<ShardFile> files;
  auto const start = now();
  for (auto left = mib << 20; left > 0;) {
    ShardWriter writer(folder, "bench", static_cast<int>(files.size()), {});
    while (writer.bytes() < std::min(left, std::int64_t{256} << 20))
      writer.append(make_row(random, pictures));
    left -= writer.bytes();
    files.push_back(writer.finish(Durability::cached));
  }
  write_manifest(folder, "bench", {}, files);
  std::printf("write: %.0f MB/s, rows made on the way\n",
              static_cast<double>(mib << 20) / (now() - start) / 1e6);
}

void read_set(std::string const& folder) {
  auto start = now();
  auto const set = ShardSet::open(folder);
  std::printf("open: %.3f s for %lld rows, peak memory %ld MiB\n", now() - start,
              static_cast<long long>(set.rows()), peak_mib());
  std::vector<std::int64_t> order(static_cast<std::size_t>(set.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (int pass = 0; pass < 2; ++pass) {  // the first one fills the page cache
    start = now();
    double bytes = 0;
    for (auto const i : order) {
      auto const row = set.read(i);
      for (auto const& pixels : row.pixels) bytes += static_cast<double>(pixels.size());
      for (auto const& pair : row.row.pairs) bytes += 4.0 * static_cast<double>(pair.ids.size());
    }
    auto const seconds = now() - start;
    std::printf("read, pass %d: %.0f MB/s, %.1f us a row, peak memory %ld MiB\n", pass + 1,
                bytes / seconds / 1e6, seconds / static_cast<double>(set.rows()) * 1e6, peak_mib());
  }
}

}  // namespace
}  // namespace vlrerank

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: shards_bench FOLDER [MIB]\n");
    return 2;
  }
  std::string const folder = argv[1];
  std::int64_t const mib = argc > 2 ? std::atoll(argv[2]) : 512;
  for (bool const pictures : {true, false}) {
    std::printf("%s\n", pictures ? "rows with 8 pictures" : "rows of text");
    auto const part = folder + (pictures ? "/pictures" : "/text");
    vlrerank::make_set(part, mib, pictures);
    vlrerank::read_set(part);
  }
}
