// tokenizer_bench.cpp -- times our tokenizer on a file of JSON strings; run.py compares.
//   tokenizer_bench TOKENIZER.json TEXTS.json REPEATS IDS  ->  one JSON object; IDS receives int32
//   ids
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tokenizer/tokenizer.hpp"

int main(int argc, char** argv) {
  using namespace vlrerank;
  using Clock = std::chrono::steady_clock;
  auto const seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  if (argc != 5) {
    std::cerr << "usage: tokenizer_bench TOKENIZER.json TEXTS.json REPEATS IDS\n";
    return 2;
  }
  try {
    auto const begin = Clock::now();
    auto const tokenizer = Tokenizer::load(argv[1]);
    auto const load_seconds = seconds(begin);
    std::ifstream in(argv[2]);
    auto const texts = nlohmann::json::parse(in).get<std::vector<std::string>>();
    auto best = 1e30;
    std::vector<std::int32_t> all;
    for (int repeat = 0; repeat < std::stoi(argv[3]); ++repeat) {
      all.clear();
      auto const start = Clock::now();
      for (auto const& text : texts) {
        auto const ids = tokenizer.encode(text, AddedTokens::parse);
        all.insert(all.end(), ids.begin(), ids.end());
      }
      best = std::min(best, seconds(start));
    }
    std::ofstream(argv[4], std::ios::binary)
        .write(reinterpret_cast<char const*>(all.data()),
               static_cast<std::streamsize>(all.size() * sizeof(all[0])));
    std::cout << nlohmann::json{{"load_seconds", load_seconds}, {"encode_seconds", best}} << "\n";
  } catch (std::exception const& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
