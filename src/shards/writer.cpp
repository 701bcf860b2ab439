// shards/writer.cpp -- rows are collected, tokens and pixels in spills, the index in memory; the
// file is laid out when all lengths are known.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "shards/format.hpp"
#include "shards/spill.hpp"

namespace vlrerank {
namespace {

using namespace shards;

constexpr std::size_t token_buffer = std::size_t{16} << 20;
constexpr std::size_t pixel_buffer = std::size_t{32} << 20;

struct HashOfHash {
  std::size_t operator()(ImageHash const& hash) const { return hash[0]; }
};

void require_consistent(StoredRow const& stored) {
  auto const& row = stored.row;
  auto const require = [&](bool condition, auto const&... what) {
    VLR_REQUIRE(condition, text(stored.file, ":", row.line, ": ", what...),
                "this is a bug of the encoder: report it with the row");
  };
  require(stored.pixels.size() == row.media.size(), "pixels of ", stored.pixels.size(), " media, ",
          row.media.size(), " media");
  for (std::size_t i = 0; i < row.media.size(); ++i) {
    auto const& grid = row.media[i].grid;
    require(grid.t > 0 && grid.h > 0 && grid.w > 0 && grid.h % 2 == 0 && grid.w % 2 == 0, "medium ",
            i, " has the grid ", grid.t, " x ", grid.h, " x ", grid.w);
    require(static_cast<std::int64_t>(stored.pixels[i].size()) == pixel_bytes(row.media[i]),
            "medium ", i, " has ", stored.pixels[i].size(), " bytes, its grid needs ",
            pixel_bytes(row.media[i]));
  }
  require(!row.pairs.empty(), "a row without documents");
  for (auto const& pair : row.pairs) {
    require(!pair.ids.empty() && row.prefix_end >= 0 &&
                row.prefix_end <= static_cast<std::int64_t>(pair.ids.size()),
            "a prefix of ", row.prefix_end, " tokens in a pair of ", pair.ids.size());
    require(std::isfinite(pair.label), "label ", pair.label);
    for (auto const medium : pair.media)
      require(medium >= 0 && static_cast<std::size_t>(medium) < row.media.size(), "medium ", medium,
              " of ", row.media.size());
  }
}

}  // namespace

struct ShardWriter::State {
  std::filesystem::path directory;
  std::string name;
  int number;
  ShardRecipe recipe;
  Spill tokens;
  Spill pixels;
  Index index;
  std::unordered_map<ImageHash, std::int32_t, HashOfHash> images;
  std::vector<std::string> files;  // as they were given
  std::vector<std::string> names;  // the same as valid UTF-8, as the file lists them

  State(std::filesystem::path directory_, std::string name_, int number_, ShardRecipe recipe_)
      : directory(std::move(directory_)),
        name(std::move(name_)),
        number(number_),
        recipe(std::move(recipe_)),
        tokens(directory, token_buffer),
        pixels(directory, pixel_buffer) {}

  std::int32_t file_number(std::string const& file) {
    auto const found = std::find(files.rbegin(), files.rend(), file);
    if (found != files.rend()) return static_cast<std::int32_t>(files.rend() - found - 1);
    files.push_back(file);
    names.push_back(valid_utf8(file));
    return static_cast<std::int32_t>(files.size() - 1);
  }

  std::int32_t image_number(MediumGrid const& medium, std::vector<std::uint8_t> const& bytes,
                            ImageHash const& hash) {
    auto const [place, added] = images.try_emplace(hash, static_cast<std::int32_t>(images.size()));
    if (!added) return place->second;
    pixels.append(std::as_bytes(std::span(bytes)));
    index.image_grid.insert(index.image_grid.end(), {medium.grid.t, medium.grid.h, medium.grid.w});
    index.image_video.push_back(medium.video ? 1 : 0);
    index.image_offsets.push_back(static_cast<std::int64_t>(pixels.size()));
    index.image_seconds.insert(index.image_seconds.end(), medium.seconds.begin(),
                               medium.seconds.end());
    index.image_seconds_offsets.push_back(static_cast<std::int64_t>(index.image_seconds.size()));
    index.image_xxh3.insert(index.image_xxh3.end(), hash.begin(), hash.end());
    return place->second;
  }
};

ShardWriter::ShardWriter(std::filesystem::path directory, std::string name, int number,
                         ShardRecipe const& recipe)
    : state_(std::make_unique<State>(std::move(directory), std::move(name), number, recipe)) {}
ShardWriter::~ShardWriter() = default;
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;

void ShardWriter::append(StoredRow const& stored) {
  require_consistent(stored);
  auto& index = state_->index;
  auto const& row = stored.row;
  std::vector<ImageHash> hashes;
  for (std::size_t i = 0; i < row.media.size(); ++i) {
    hashes.push_back(hash_image(row.media[i], stored.pixels[i]));
    index.media.push_back(state_->image_number(row.media[i], stored.pixels[i], hashes.back()));
  }
  index.media_offsets.push_back(static_cast<std::int64_t>(index.media.size()));
  for (auto const& pair : row.pairs) {
    state_->tokens.append(std::as_bytes(std::span(pair.ids)));
    index.pair_offsets.push_back(index.pair_offsets.back() +
                                 static_cast<std::int64_t>(pair.ids.size()));
    index.labels.push_back(pair.label);
    index.cut_tokens.push_back(pair.cut_tokens);
    index.pair_media.insert(index.pair_media.end(), pair.media.begin(), pair.media.end());
    index.pair_media_offsets.push_back(static_cast<std::int64_t>(index.pair_media.size()));
  }
  index.group_offsets.push_back(index.pairs());
  index.prefix_end.push_back(row.prefix_end);
  index.source_line.push_back(row.line);
  index.source_file.push_back(state_->file_number(stored.file));
  auto const& file = state_->names[static_cast<std::size_t>(index.source_file.back())];
  index.row_ids.insert(index.row_ids.end(), stored.id.begin(), stored.id.end());
  index.row_id_offsets.push_back(static_cast<std::int64_t>(index.row_ids.size()));
  index.row_xxh3.push_back(hash_row(row, hashes, stored.id, file));
}

std::int64_t ShardWriter::bytes() const {
  return static_cast<std::int64_t>(state_->tokens.size() + state_->pixels.size());
}

std::int64_t ShardWriter::rows() const {
  return state_->index.rows();
}

ShardFile ShardWriter::finish(Durability durability) {
  auto& index = state_->index;
  auto const files = nlohmann::json(state_->names).dump();
  index.files.assign(files.begin(), files.end());

  ShardFile shard;
  shard.file = shard_file_name(state_->name, state_->number);
  shard.rows = index.rows();
  shard.pairs = index.pairs();
  shard.tokens = index.pair_offsets.back();
  shard.images = index.images();

  hdf5::Layout layout;
  layout.attributes = {{"format", shard_format, ""},
                       {"version", format_version, ""},
                       {"rows", shard.rows, ""},
                       {"pairs", shard.pairs, ""},
                       {"tokens", shard.tokens, ""},
                       {"images", shard.images, ""},
                       {"tokenizer_xxh3", hex(state_->recipe.tokenizer), ""},
                       {"recipe", options_json(state_->recipe), ""},
                       {"sources", sources_text(state_->recipe), ""}};
  std::vector<std::uint64_t> hashes;
  for_each_array(index, [&](char const* name, auto const& values, int columns) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    hdf5::Array array{name, type_of<T>(), {values.size()}, 0};
    if (columns != 0)
      array.shape = {values.size() / static_cast<unsigned>(columns),
                     static_cast<std::uint64_t>(columns)};
    hashes.push_back(hash_bytes(values.data(), values.size() * sizeof(T)));
    layout.arrays.push_back(array);
    layout.attributes.push_back({"xxh3", hashes.back(), name});
  });
  shard.index = hash_bytes(hashes.data(), hashes.size() * sizeof hashes[0]);
  layout.arrays.push_back({"tokens", hdf5::Type::i32, {state_->tokens.size() / 4}, 0});
  layout.arrays.push_back({"pixels", hdf5::Type::u8, {state_->pixels.size()}, 0});

  std::uint64_t wanted = 1 << 20;  // for HDF5's own structure
  for (auto const& array : layout.arrays) wanted += array.bytes();
  require_space(state_->directory, wanted);

  auto const path = state_->directory / shard.file;
  AtomicFile file(path);
  hdf5::create(file.temporary(), layout);
  for_each_array(index, [&](char const* name, auto const& values, int) {
    file.write_at(layout.array(name)->offset, std::as_bytes(std::span(values)));
  });
  auto const copy = [&](Spill const& spill, char const* name) {
    auto const start = layout.array(name)->offset;
    spill.for_each([&](std::uint64_t offset, std::span<std::byte const> piece) {
      file.write_at(start + offset, piece);
    });
  };
  copy(state_->tokens, "tokens");
  copy(state_->pixels, "pixels");
  shard.bytes = std::filesystem::file_size(file.temporary());
  file.commit(durability);
  return shard;
}

}  // namespace vlrerank
