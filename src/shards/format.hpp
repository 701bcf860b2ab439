// shards/format.hpp -- what a shard file holds, in one table that writer and reader share.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/hdf5.hpp"
#include "shards/shard.hpp"

namespace vlrerank::shards {

constexpr std::int64_t format_version = 1;
constexpr char const* shard_format = "vlrerank-shard";
constexpr char const* set_format = "vlrerank-shards";
constexpr char const* manifest_name = "manifest.json";
constexpr char const* remake = "run `vlrerank prepare` again";

/// Everything of a shard but tokens and pixels. G rows, P pairs, M media of rows, N images.
/// An array of offsets is one longer than what it divides and begins with 0.
struct Index {
  std::vector<std::int64_t> group_offsets{0};          // [G + 1] into the pairs
  std::vector<std::int32_t> prefix_end;                // [G] leading tokens equal in all pairs
  std::vector<std::int64_t> source_line;               // [G] 1-based
  std::vector<std::int32_t> source_file;               // [G] into the list `files`
  std::vector<std::int64_t> row_id_offsets{0};         // [G + 1] into row_ids
  std::vector<std::uint8_t> row_ids;                   // UTF-8, end to end
  std::vector<std::int64_t> media_offsets{0};          // [G + 1] into media
  std::vector<std::int32_t> media;                     // [M] into the images
  std::vector<std::uint64_t> row_xxh3;                 // [G]
  std::vector<std::int64_t> pair_offsets{0};           // [P + 1] into the tokens
  std::vector<float> labels;                           // [P]
  std::vector<std::int32_t> cut_tokens;                // [P]
  std::vector<std::int64_t> pair_media_offsets{0};     // [P + 1] into pair_media
  std::vector<std::int32_t> pair_media;                // into the media of the pair's row
  std::vector<std::int32_t> image_grid;                // [N, 3] t, h, w
  std::vector<std::uint8_t> image_video;               // [N] 1: a video
  std::vector<std::int64_t> image_offsets{0};          // [N + 1] bytes into the pixels
  std::vector<std::int64_t> image_seconds_offsets{0};  // [N + 1] into image_seconds
  std::vector<double> image_seconds;                   // time of each frame pair of the videos
  std::vector<std::uint64_t> image_xxh3;               // [N, 2] XXH3-128: low, high
  std::vector<std::uint8_t> files;                     // JSON list of the source files' names

  std::int64_t rows() const { return static_cast<std::int64_t>(prefix_end.size()); }
  std::int64_t pairs() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t images() const { return static_cast<std::int64_t>(image_video.size()); }
};

/// Calls `visit(name, vector, columns)` for every array; columns is 0 for one dimension.
template <class AnyIndex, class Visit>
void for_each_array(AnyIndex& index, Visit&& visit) {
  visit("group_offsets", index.group_offsets, 0);
  visit("prefix_end", index.prefix_end, 0);
  visit("source_line", index.source_line, 0);
  visit("source_file", index.source_file, 0);
  visit("row_id_offsets", index.row_id_offsets, 0);
  visit("row_ids", index.row_ids, 0);
  visit("media_offsets", index.media_offsets, 0);
  visit("media", index.media, 0);
  visit("row_xxh3", index.row_xxh3, 0);
  visit("pair_offsets", index.pair_offsets, 0);
  visit("labels", index.labels, 0);
  visit("cut_tokens", index.cut_tokens, 0);
  visit("pair_media_offsets", index.pair_media_offsets, 0);
  visit("pair_media", index.pair_media, 0);
  visit("image_grid", index.image_grid, 3);
  visit("image_video", index.image_video, 0);
  visit("image_offsets", index.image_offsets, 0);
  visit("image_seconds_offsets", index.image_seconds_offsets, 0);
  visit("image_seconds", index.image_seconds, 0);
  visit("image_xxh3", index.image_xxh3, 2);
  visit("files", index.files, 0);
}

template <class T>
constexpr hdf5::Type type_of();
template <>
constexpr hdf5::Type type_of<std::uint8_t>() {
  return hdf5::Type::u8;
}
template <>
constexpr hdf5::Type type_of<std::int32_t>() {
  return hdf5::Type::i32;
}
template <>
constexpr hdf5::Type type_of<std::int64_t>() {
  return hdf5::Type::i64;
}
template <>
constexpr hdf5::Type type_of<std::uint64_t>() {
  return hdf5::Type::u64;
}
template <>
constexpr hdf5::Type type_of<float>() {
  return hdf5::Type::f32;
}
template <>
constexpr hdf5::Type type_of<double>() {
  return hdf5::Type::f64;
}

using ImageHash = std::array<std::uint64_t, 2>;

/// XXH3 (64 bit) of bytes as they lie.
std::uint64_t hash_bytes(void const* bytes, std::size_t count);
/// XXH3-128 of a medium: grid, kind, times and pixels.
ImageHash hash_image(MediumGrid const& medium, std::vector<std::uint8_t> const& pixels);
/// XXH3 of all that a row says, its images by their hashes.
std::uint64_t hash_row(EncodedRow const& row, std::vector<ImageHash> const& images,
                       std::string const& id, std::string const& file);

/// The recipe's part that decides how a row is encoded, without sources: the shard's attribute.
std::string options_json(ShardRecipe const& recipe);
/// The recipe's sources in the one form in which they are written and compared; "[]" for none.
std::string sources_text(ShardRecipe const& recipe);

/// The text with every byte that is not UTF-8 replaced by U+FFFD: file names can hold any bytes.
std::string valid_utf8(std::string const& text);

/// "NAME-00042.h5".
std::string shard_file_name(std::string const& name, int number);

/// A shard file opened and checked: structure, counts, offsets in range, checksums of the index.
struct OpenedShard {
  hdf5::Layout layout;
  Index index;
  ShardFile summary;
  ShardRecipe recipe;
};
/// Throws Error (exit 3) naming the file and what is wrong. Memory: the shard's index.
OpenedShard open_shard_file(std::filesystem::path const& path);

struct Manifest {
  std::string name;
  ShardRecipe recipe;
  std::vector<ShardFile> shards;
};
/// Throws Error (exit 3) when it is missing, cut or of another version.
Manifest read_manifest(std::filesystem::path const& directory);

}  // namespace vlrerank::shards
