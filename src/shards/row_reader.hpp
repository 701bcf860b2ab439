// shards/row_reader.hpp -- what stays in memory of an open shard, and the reading of one row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/files.hpp"
#include "shards/format.hpp"

namespace vlrerank::shards {

/// Where an array lies; the index keeps this of the arrays that are read row by row.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

struct Shard {
  std::filesystem::path path;
  std::int64_t first_row = 0;
  std::vector<std::string> files;
  std::vector<std::uint32_t> first_pair;   // [G + 1]
  std::vector<std::int64_t> first_token;   // [G]
  std::vector<std::int32_t> prefix;        // [G]
  std::vector<std::int32_t> patches;       // [G]
  std::vector<std::int64_t> source_line;   // [G]
  std::vector<std::int32_t> source_file;   // [G]
  std::vector<std::uint64_t> row_xxh3;     // [G]
  std::vector<std::int64_t> first_medium;  // [G + 1]
  std::vector<std::int64_t> first_letter;  // [G + 1] of row_ids
  std::vector<bool> is_cut;                // [G] some pair has cut tokens
  std::vector<std::int32_t> pair_tokens;   // [P]
  std::vector<float> labels;               // [P]
  Place tokens, pixels, row_ids, media, cut_tokens, pair_media_offsets, pair_media, image_grid,
      image_video, image_offsets, image_seconds_offsets, image_seconds, image_xxh3;

  std::size_t rows() const { return prefix.size(); }
};

/// What a checked shard keeps. Throws Error (exit 3) when a row has 2^31 patches or more.
Shard keep(OpenedShard const& opened, std::filesystem::path const& path);

/// Reads row `row` of the shard from its file, and compares the checksums of its images and of
/// the row. Every number that comes from the file is checked before it is used: the file may have
/// been changed since it was opened. Throws Error (exit 3) naming file and row.
StoredRow read_row(Shard const& shard, InputFile const& file, std::size_t row);

}  // namespace vlrerank::shards
