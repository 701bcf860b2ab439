// shards/shard.hpp -- HDF5 shards: encoded rows on disk, flat arrays with offsets (docs/formats.md).
// NAME-00000.h5 ... and manifest.json, which is written last and makes the set valid.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/encode.hpp"
#include "media/image.hpp"

namespace vlrerank {

/// One row as a shard gives it back: encoded pairs and the pixels they refer to.
/// Media of a row are indices into the shard's image table; each distinct image stands once.
struct StoredRow {
  EncodedRow row;
  std::vector<std::vector<std::uint8_t>> pixels;  ///< of row.media: u8 RGB [t' * H * W * 3]
  std::string id;
  std::string file;
};

/// What a shard set was made with; a set of another fingerprint is refused, difference named.
struct ShardRecipe {
  std::uint64_t tokenizer = 0;  ///< Tokenizer::fingerprint()
  EncodeOptions encode;
  ImageOptions image;
  std::string sources;  ///< JSON list of {path, bytes, xxh3} of the input files, filters and seeds
};

class ShardWriter {
 public:
  /// Rows go to `directory`/NAME-<number>.h5, under a temporary name until finish().
  ShardWriter(std::filesystem::path directory, std::string name, int number, ShardRecipe const& recipe);
  ~ShardWriter();
  void append(StoredRow const& row);
  std::int64_t bytes() const;
  /// Writes offsets and checksums, fsyncs, renames. Throws Error (exit 74) when the disk is full;
  /// the temporary file is then removed.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Lengths and labels of all rows, without tokens and pixels: what planning an epoch needs.
struct RowIndex {
  std::int32_t shard = 0;
  std::int32_t row = 0;                     ///< inside the shard
  std::int32_t prefix = 0;                  ///< shared leading tokens
  std::vector<std::int32_t> pair_tokens;    ///< tokens of each pair
  std::vector<float> labels;                ///< of each pair
  std::int32_t patches = 0;                 ///< of all its media
};

class ShardSet {
 public:
  /// Opens the manifest and every shard's header; checks the recipe of each against the others.
  /// Throws Error (exit 3) naming file and reason. Read-only; safe to open on every rank.
  static ShardSet open(std::filesystem::path const& directory);
  ShardSet(ShardSet&&) noexcept;
  ~ShardSet();

  std::int64_t rows() const;
  ShardRecipe const& recipe() const;
  /// Index record of row i, 0 <= i < rows(), in the order of the source file.
  RowIndex index(std::int64_t i) const;
  /// Reads one row with its pixels and verifies its checksums (exit 3 on a mismatch, naming shard
  /// and row). Thread-safe: pread on flat arrays.
  StoredRow read(std::int64_t i) const;

 private:
  struct State;
  explicit ShardSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vlrerank
