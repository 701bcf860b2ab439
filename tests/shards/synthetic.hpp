// shards/synthetic.hpp -- made-up rows for the tests of shards, and shards forged by hand.
#pragma once

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "io/files.hpp"
#include "io/hdf5.hpp"
#include "shards/format.hpp"
#include "shards/shard.hpp"

namespace vlrerank::test {

inline ShardRecipe recipe() {
  ShardRecipe recipe;
  recipe.tokenizer = 0x0123456789abcdef;
  recipe.encode.max_length = 512;
  recipe.encode.instruction = "Find \"it\"\n\xE6\xB0\xB4";
  recipe.sources = R"([{"path":"a.jsonl","bytes":12,"xxh3":"00ff"}])";
  return recipe;
}

/// A picture (frames = 0) or a video of `frames` frame pairs, filled from `seed`.
inline std::pair<MediumGrid, std::vector<std::uint8_t>> medium(int h, int w, int frames,
                                                               unsigned seed) {
  MediumGrid grid;
  grid.grid = {std::max(frames, 1), h, w};
  grid.video = frames > 0;
  for (int i = 0; i < frames; ++i) grid.seconds.push_back(0.25 + i);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(pixel_bytes(grid)));
  std::mt19937 random(seed);
  for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
  return {grid, pixels};
}

/// Row `number`: 1 to 5 documents, 0 to 3 media drawn from a pool of 6, one of them a video.
inline StoredRow row(unsigned number) {
  std::mt19937 random(number + 1);
  StoredRow stored;
  stored.row.line = number + 10;
  stored.id = number % 3 == 0 ? "" : "row-" + std::to_string(number);
  stored.file = number % 4 == 3 ? "folder/b.jsonl" : "a.jsonl";
  for (unsigned i = 0, count = random() % 4; i < count; ++i) {
    unsigned const seed = random() % 6;
    auto [grid, pixels] = medium(2 + 2 * (seed % 2), 4, seed == 5 ? 2 : 0, seed);
    stored.row.media.push_back(grid);
    stored.pixels.push_back(std::move(pixels));
  }
  unsigned const documents = 1 + random() % 5;
  stored.row.prefix_end = documents > 1 ? 3 : 0;
  for (unsigned i = 0; i < documents; ++i) {
    EncodedPair pair;
    pair.label = i == 0 ? 1.0f : 0.25f * static_cast<float>(i % 3);
    pair.ids = {7, 8, 9};
    for (unsigned k = 0, length = random() % 40; k < length; ++k)
      pair.ids.push_back(static_cast<std::int32_t>(random() % 151'000));
    pair.cut_tokens = static_cast<std::int32_t>(random() % 2);
    for (unsigned k = 0; k < stored.row.media.size(); ++k)
      if (random() % 2) pair.media.push_back(static_cast<std::int32_t>(k));
    stored.row.pairs.push_back(std::move(pair));
  }
  return stored;
}

inline bool same(StoredRow const& a, StoredRow const& b) {
  auto const same_pair = [](EncodedPair const& x, EncodedPair const& y) {
    return x.label == y.label && x.ids == y.ids && x.media == y.media &&
           x.cut_tokens == y.cut_tokens;
  };
  auto const same_medium = [](MediumGrid const& x, MediumGrid const& y) {
    return x.grid == y.grid && x.video == y.video && x.seconds == y.seconds;
  };
  return a.id == b.id && a.file == b.file && a.pixels == b.pixels && a.row.line == b.row.line &&
         a.row.prefix_end == b.row.prefix_end &&
         std::equal(a.row.pairs.begin(), a.row.pairs.end(), b.row.pairs.begin(), b.row.pairs.end(),
                    same_pair) &&
         std::equal(a.row.media.begin(), a.row.media.end(), b.row.media.begin(), b.row.media.end(),
                    same_medium);
}

/// A set of `rows` rows in shards of `per_shard`.
inline std::vector<ShardFile> write_set(std::filesystem::path const& folder, unsigned rows,
                                        unsigned per_shard, ShardRecipe const& how = recipe()) {
  std::vector<ShardFile> files;
  for (unsigned first = 0; first < rows; first += per_shard) {
    ShardWriter writer(folder, "part", static_cast<int>(files.size()), how);
    for (unsigned i = first; i < std::min(first + per_shard, rows); ++i) writer.append(row(i));
    files.push_back(writer.finish(Durability::cached));
  }
  write_manifest(folder, "part", how, files);
  return files;
}

/// Writes a shard with right checksums around any content: what a hostile hand would do.
/// @param change  called with the layout before the file is made
template <class Change>
void forge(std::filesystem::path const& path, shards::Index const& index,
           std::vector<std::int32_t> const& tokens, std::uint64_t pixels, Change change,
           std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>> const& pieces = {}) {
  hdf5::Layout layout;
  layout.attributes = {{"format", shards::shard_format, ""},
                       {"version", shards::format_version, ""},
                       {"recipe", shards::options_json(recipe()), ""},
                       {"sources", recipe().sources, ""}};
  shards::for_each_array(index, [&](char const* name, auto const& values, unsigned columns) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    hdf5::Array array{name, shards::type_of<T>(), {values.size()}, 0};
    if (columns != 0) array.shape = {values.size() / columns, columns};
    layout.arrays.push_back(array);
    layout.attributes.push_back({"xxh3", shards::hash_bytes(values.data(), array.bytes()), name});
  });
  layout.arrays.push_back({"tokens", hdf5::Type::i32, {tokens.size()}, 0});
  layout.arrays.push_back({"pixels", hdf5::Type::u8, {pixels}, 0});
  change(layout);
  AtomicFile file(path);
  hdf5::create(file.temporary(), layout);
  auto const fill = [&](char const* name, std::span<std::byte const> bytes) {
    if (auto const* array = layout.array(name); array != nullptr)
      file.write_at(array->offset, bytes.first(std::min(bytes.size(), array->bytes())));
  };
  shards::for_each_array(index, [&](char const* name, auto const& values, unsigned) {
    fill(name, std::as_bytes(std::span(values)));
  });
  fill("tokens", std::as_bytes(std::span(tokens)));
  for (auto const& [offset, bytes] : pieces)
    file.write_at(layout.array("pixels")->offset + offset, std::as_bytes(std::span(bytes)));
  file.commit(Durability::cached);
}

}  // namespace vlrerank::test
