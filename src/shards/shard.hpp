// shards/shard.hpp -- HDF5 shards: encoded rows on disk, flat arrays with offsets
// (docs/formats.md). NAME-00000.h5 ... and manifest.json, which is written last and makes the set
// valid.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/encode.hpp"
#include "io/files.hpp"
#include "media/image.hpp"
#include "media/video.hpp"

namespace vlrerank {

/// One row as a shard gives it back: encoded pairs and the pixels they refer to.
/// Media of a row are indices into the shard's image table; each distinct image stands once.
struct StoredRow {
  EncodedRow row;
  std::vector<std::vector<std::uint8_t>> pixels;  ///< of row.media: u8 RGB [t' * H * W * 3]
  std::string id;
  std::string file;
};

/// Bytes of a medium's pixels: H = 16 h, W = 16 w; t' is 1 for a picture and 2 t for a video.
std::int64_t pixel_bytes(MediumGrid const& medium);

/// What a shard set was made with; a set of another fingerprint is refused, difference named.
struct ShardRecipe {
  std::uint64_t tokenizer = 0;  ///< Tokenizer::fingerprint()
  EncodeOptions encode;
  ImageOptions image;
  std::string sources;  ///< JSON of the input files {path, bytes, xxh3}, filters and seeds
  VideoOptions video;   ///< its root, exif and max_pixels are those of `image`
};

/// The recipe as JSON, every option by name; reading it back gives the same recipe.
std::string to_json(ShardRecipe const& recipe);
ShardRecipe recipe_from_json(std::string const& json, std::string const& file);
/// "max_length is 4096, wanted 512; ..." or "" when rows made by both are encoded alike. Sources
/// are not compared.
std::string recipe_difference(ShardRecipe const& has, ShardRecipe const& wanted);

/// One finished shard, as the manifest lists it.
struct ShardFile {
  std::string file;         ///< name inside the set's folder
  std::uint64_t bytes = 0;  ///< of the file
  std::uint64_t index = 0;  ///< XXH3 over the checksums of its index arrays
  std::int64_t rows = 0;
  std::int64_t pairs = 0;
  std::int64_t tokens = 0;
  std::int64_t images = 0;  ///< distinct pictures and videos
};

class ShardWriter {
 public:
  /// Rows go to `directory`/NAME-<number>.h5, under a temporary name until finish().
  /// Memory: at most 48 MiB of tokens and pixels, the rest waits in unnamed files; plus the index.
  ShardWriter(std::filesystem::path directory, std::string name, int number,
              ShardRecipe const& recipe);
  ~ShardWriter();
  ShardWriter(ShardWriter&&) noexcept;
  void append(StoredRow const& row);
  /// Of tokens and pixels so far, each distinct image once.
  std::int64_t bytes() const;
  std::int64_t rows() const;
  /// Writes offsets and checksums, fsyncs, renames. Throws Error (exit 74) when the disk is full;
  /// the temporary file is then removed.
  ShardFile finish(Durability durability = Durability::synced);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes `directory`/manifest.json: from then on the set is valid. Shards are listed in the
/// order of their rows.
void write_manifest(std::filesystem::path const& directory, std::string const& name,
                    ShardRecipe const& recipe, std::vector<ShardFile> const& shards);

/// Lengths and labels of all rows, without tokens and pixels: what planning an epoch needs.
struct RowIndex {
  std::int32_t shard = 0;
  std::int32_t row = 0;                   ///< inside the shard
  std::int32_t prefix = 0;                ///< shared leading tokens
  std::vector<std::int32_t> pair_tokens;  ///< tokens of each pair
  std::vector<float> labels;              ///< of each pair
  std::int32_t patches = 0;               ///< of all its media
};

class ShardSet {
 public:
  /// Opens the manifest and every shard's header; checks the recipe of each against the others.
  /// Throws Error (exit 3) naming file and reason. Read-only; safe to open on every rank.
  /// Reads every index array once and verifies its checksum. Memory: 57 bytes a row and 8 a pair.
  static ShardSet open(std::filesystem::path const& directory);
  /// One shard alone, whether a manifest lists it or not.
  static ShardSet open_shard(std::filesystem::path const& file);
  ShardSet(ShardSet&&) noexcept;
  ShardSet& operator=(ShardSet&&) noexcept;
  ~ShardSet();

  std::int64_t rows() const;
  std::string const& name() const;
  ShardRecipe const& recipe() const;
  std::vector<ShardFile> const& shards() const;
  /// Index record of row i, 0 <= i < rows(), in the order of the source file.
  RowIndex index(std::int64_t i) const;
  /// Reads one row with its pixels and verifies its checksums (exit 3 on a mismatch, naming shard
  /// and row). Thread-safe: pread on flat arrays.
  StoredRow read(std::int64_t i) const;
  /// Throws Error (exit 3) naming every difference when the set was made with another tokenizer
  /// or other options than `wanted`.
  void require_recipe(ShardRecipe const& wanted) const;

 private:
  struct State;
  explicit ShardSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether a data set named `path` is a folder of shards, not a JSONL file.
bool looks_like_shards(std::filesystem::path const& path);

}  // namespace vlrerank
