// prepare/support.hpp -- made-up data sets of JSON lines with pictures, and what prepare made.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "io/files.hpp"
#include "prepare/prepare.hpp"
#include "support/test_data.hpp"
#include "tokenizer/tokenizer.hpp"

namespace vlrerank::test {

namespace fs = std::filesystem;

inline Tokenizer const& tokenizer() {
  static auto const tokenizer = Tokenizer::load(test_data("qwen3-tokenizer"));
  return tokenizer;
}

/// An uncompressed 24-bit BMP of `size` x `size` noise.
inline std::string bitmap(int size, unsigned seed) {
  std::string bytes(54, '\0');
  auto const put = [&](std::size_t at, std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i)
      bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  auto const stride = static_cast<std::uint32_t>((3 * size + 3) / 4 * 4);
  auto const pixels = stride * static_cast<std::uint32_t>(size);
  bytes[0] = 'B', bytes[1] = 'M';
  put(2, 54 + pixels, 4), put(10, 54, 4), put(14, 40, 4);
  put(18, static_cast<std::uint32_t>(size), 4), put(22, static_cast<std::uint32_t>(size), 4);
  put(26, 1, 2), put(28, 24, 2), put(34, pixels, 4);
  std::mt19937 random(seed);
  for (std::uint32_t i = 0; i < pixels; ++i) bytes += static_cast<char>(random());
  return bytes;
}

/// FlagEmbedding rows: a third of them with pictures among ten, every `bad_every`th not JSON.
inline void write_rows(fs::path const& folder, std::string const& name, int rows,
                       int bad_every = 0) {
  fs::create_directories(folder);
  for (unsigned i = 0; i < 10; ++i)
    if (auto const path = folder / text("p", i, ".bmp"); !fs::exists(path))
      write_file(path, bitmap(40 + 8 * static_cast<int>(i), i), Durability::cached);
  std::string lines;
  for (int i = 0; i < rows; ++i) {
    if (bad_every > 0 && i % bad_every == bad_every - 1) {
      lines += text("{\"query\": \"no end ", i, "\n");
      continue;
    }
    auto const picture = [&](int k) {
      return nlohmann::json{{"text", text("picture ", k)}, {"image", text("p", k % 10, ".bmp")}};
    };
    nlohmann::json row;
    row["instruction"] = "Find what is asked for.";
    row["query"] = {{"text", text("query number ", i)}};
    row["documents"] = nlohmann::json::array();
    for (int k = 0; k < 3; ++k) {
      nlohmann::json document =
          i % 3 == 0 ? picture(i + k) : nlohmann::json{{"text", text("text ", i * k)}};
      document["label"] = k == 0 ? 1 : 0;
      row["documents"].push_back(document);
    }
    lines += row.dump() + "\n";
  }
  write_file(folder / name, lines, Durability::cached);
}

inline PrepareRequest request(fs::path const& input, fs::path const& output) {
  PrepareRequest request;
  request.inputs = {input.string()};
  request.output = output;
  request.tokenizer = &tokenizer();
  request.shard_bytes = 400'000;
  return request;
}

/// Every file of a folder with its bytes, folders below it included.
inline std::map<std::string, std::string> contents(fs::path const& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (auto const& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

}  // namespace vlrerank::test
