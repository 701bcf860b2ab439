// shards/index.cpp -- opens one shard file and believes nothing in it: every array's type and
// length, every offset and number is checked before anything is looked up with it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "shards/format.hpp"

namespace vlrerank::shards {
namespace {

/// Throws for one file; the remedy is always the same.
class Judge {
 public:
  explicit Judge(std::filesystem::path const& path) : path_(path) {}
  template <class... Parts>
  void require(bool condition, Parts const&... what) const {
    VLR_INPUT(condition, text(path_.string(), ": ", what...), remake);
  }

 private:
  std::filesystem::path const& path_;
};

/// Offsets begin with 0, do not fall, end at `last`, and divide into `count` parts.
void require_offsets(Judge const& judge, char const* name, std::vector<std::int64_t> const& offsets,
                     std::size_t count, std::uint64_t last) {
  judge.require(offsets.size() == count + 1, "dataset ", name, " has ", offsets.size(),
                " elements, expected ", count + 1);
  judge.require(offsets.front() == 0, "dataset ", name, " does not begin with 0");
  auto const fall = std::is_sorted_until(offsets.begin(), offsets.end());
  judge.require(fall == offsets.end(), "dataset ", name, " falls at element ",
                fall - offsets.begin());
  judge.require(static_cast<std::uint64_t>(offsets.back()) == last, "dataset ", name, " ends at ",
                offsets.back(), ", expected ", last);
}

template <class T>
void require_length(Judge const& judge, char const* name, std::vector<T> const& values,
                    std::size_t count) {
  judge.require(values.size() == count, "dataset ", name, " has ", values.size(),
                " elements, expected ", count);
}

void require_below(Judge const& judge, char const* name, std::vector<std::int32_t> const& values,
                   std::int64_t limit) {
  for (std::size_t i = 0; i < values.size(); ++i)
    judge.require(values[i] >= 0 && values[i] < limit, "dataset ", name, " element ", i, " is ",
                  values[i], ", expected 0 to ", limit - 1);
}

void check_images(Judge const& judge, Index const& index, std::uint64_t pixels) {
  std::size_t const count = index.image_video.size();
  require_length(judge, "image_grid", index.image_grid, 3 * count);
  require_length(judge, "image_xxh3", index.image_xxh3, 2 * count);
  require_offsets(judge, "image_offsets", index.image_offsets, count, pixels);
  require_offsets(judge, "image_seconds_offsets", index.image_seconds_offsets, count,
                  index.image_seconds.size());
  for (std::size_t i = 0; i < count; ++i) {
    MediumGrid medium;
    medium.grid = {index.image_grid[3 * i], index.image_grid[3 * i + 1],
                   index.image_grid[3 * i + 2]};
    medium.video = index.image_video[i] != 0;
    auto const& [t, h, w] = medium.grid;
    constexpr std::int32_t most = 1 << 20;
    judge.require(t > 0 && h > 0 && w > 0 && t < most && h < most && w < most && h % 2 == 0 &&
                      w % 2 == 0 &&
                      std::int64_t{h} * w <= std::numeric_limits<std::int32_t>::max() / t,
                  "image ", i, " has the grid ", t, " x ", h, " x ", w);
    judge.require(pixel_bytes(medium) <= index.image_offsets[i + 1] - index.image_offsets[i],
                  "image ", i, " has fewer pixels than its grid needs");
  }
}

void check_index(Judge const& judge, Index const& index, std::uint64_t tokens,
                 std::uint64_t pixels) {
  auto const rows = index.prefix_end.size(), pairs = index.labels.size();
  judge.require(pairs <= std::numeric_limits<std::uint32_t>::max(), "too many pairs");
  require_offsets(judge, "group_offsets", index.group_offsets, rows, pairs);
  require_length(judge, "source_line", index.source_line, rows);
  require_length(judge, "source_file", index.source_file, rows);
  require_length(judge, "row_xxh3", index.row_xxh3, rows);
  require_offsets(judge, "row_id_offsets", index.row_id_offsets, rows, index.row_ids.size());
  require_offsets(judge, "media_offsets", index.media_offsets, rows, index.media.size());
  require_offsets(judge, "pair_offsets", index.pair_offsets, pairs, tokens);
  require_length(judge, "cut_tokens", index.cut_tokens, pairs);
  require_offsets(judge, "pair_media_offsets", index.pair_media_offsets, pairs,
                  index.pair_media.size());
  check_images(judge, index, pixels);
  require_below(judge, "media", index.media, index.images());

  for (std::size_t row = 0; row < rows; ++row) {
    auto const first = static_cast<std::size_t>(index.group_offsets[row]);
    auto const last = static_cast<std::size_t>(index.group_offsets[row + 1]);
    auto const media = index.media_offsets[row + 1] - index.media_offsets[row];
    judge.require(last > first, "row ", row, " has no documents");
    for (std::size_t pair = first; pair < last; ++pair) {
      auto const length = index.pair_offsets[pair + 1] - index.pair_offsets[pair];
      judge.require(length > 0 && length <= std::numeric_limits<std::int32_t>::max(), "pair ", pair,
                    " has ", length, " tokens");
      judge.require(index.prefix_end[row] >= 0 && index.prefix_end[row] <= length, "row ", row,
                    " shares ", index.prefix_end[row], " tokens, a pair has ", length);
      judge.require(std::isfinite(index.labels[pair]), "pair ", pair, " has the label ",
                    index.labels[pair]);
      for (auto i = index.pair_media_offsets[pair]; i < index.pair_media_offsets[pair + 1]; ++i) {
        auto const medium = index.pair_media[static_cast<std::size_t>(i)];
        judge.require(medium >= 0 && medium < media, "pair ", pair, " shows medium ", medium,
                      " of ", media);
      }
    }
  }
}

/// Reads every index array and compares its checksum; returns the hash over the checksums.
std::uint64_t read_index(Judge const& judge, InputFile const& file, hdf5::Layout const& layout,
                         Index& index) {
  std::vector<std::uint64_t> hashes;
  for_each_array(index, [&](char const* name, auto& values, int columns) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    auto const* array = layout.array(name);
    judge.require(array != nullptr, "dataset ", name, " is missing");
    judge.require(array->type == type_of<T>(), "dataset ", name, " holds ",
                  hdf5::name_of(array->type), ", expected ", hdf5::name_of(type_of<T>()));
    bool const flat = columns == 0 ? array->shape.size() == 1
                                   : array->shape.size() == 2 &&
                                         array->shape[1] == static_cast<unsigned>(columns);
    judge.require(flat, "dataset ", name, " has the wrong shape");
    values.resize(array->elements());
    file.read_at(array->offset, std::as_writable_bytes(std::span(values)));
    hashes.push_back(hash_bytes(values.data(), values.size() * sizeof(T)));
    auto const* wanted = layout.attribute("xxh3", name);
    auto const* hash = wanted ? std::get_if<std::uint64_t>(wanted) : nullptr;
    judge.require(hash != nullptr, "dataset ", name, " has no checksum");
    judge.require(*hash == hashes.back(), "dataset ", name, " is damaged: its checksum differs");
  });
  return hash_bytes(hashes.data(), hashes.size() * sizeof hashes[0]);
}

std::string text_attribute(Judge const& judge, hdf5::Layout const& layout, char const* name) {
  auto const* value = layout.attribute(name);
  auto const* string = value ? std::get_if<std::string>(value) : nullptr;
  judge.require(string != nullptr, "is not a shard of vlrerank: attribute ", name, " is missing");
  return *string;
}

}  // namespace

OpenedShard open_shard_file(std::filesystem::path const& path) {
  Judge const judge(path);
  OpenedShard opened{hdf5::open(path), {}, {}, {}};
  auto const& layout = opened.layout;
  auto const format = text_attribute(judge, layout, "format");
  judge.require(format == shard_format, "is not a shard of vlrerank but ", format);
  auto const* version = layout.attribute("version");
  auto const* number = version ? std::get_if<std::int64_t>(version) : nullptr;
  judge.require(number != nullptr, "attribute version is missing");
  judge.require(*number == format_version, "has format version ", *number, ", this program reads ",
                format_version);
  opened.recipe = recipe_from_json(text_attribute(judge, layout, "recipe"), path.string());
  opened.recipe.sources = text_attribute(judge, layout, "sources");

  auto const* tokens = layout.array("tokens");
  auto const* pixels = layout.array("pixels");
  judge.require(tokens && tokens->type == hdf5::Type::i32 && tokens->shape.size() == 1,
                "dataset tokens is missing or not int32");
  judge.require(pixels && pixels->type == hdf5::Type::u8 && pixels->shape.size() == 1,
                "dataset pixels is missing or not uint8");

  InputFile const file(path);
  auto& summary = opened.summary;
  summary.index = read_index(judge, file, layout, opened.index);
  check_index(judge, opened.index, tokens->elements(), pixels->elements());
  auto const names = nlohmann::json::parse(opened.index.files, nullptr, false);
  judge.require(names.is_array() && std::all_of(names.begin(), names.end(),
                                                [](auto const& name) { return name.is_string(); }),
                "dataset files is not a JSON list of names");
  require_below(judge, "source_file", opened.index.source_file,
                static_cast<std::int64_t>(names.size()));
  summary.file = path.filename().string();
  summary.bytes = file.size();
  summary.rows = opened.index.rows();
  summary.pairs = opened.index.pairs();
  summary.tokens = static_cast<std::int64_t>(tokens->elements());
  summary.images = opened.index.images();
  return opened;
}

}  // namespace vlrerank::shards
