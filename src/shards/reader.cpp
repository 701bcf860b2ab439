// shards/reader.cpp -- a shard set open for reading. In memory: what planning needs of each row.
// The rest comes by pread when a row is read, and is checked again, for files can change.
#include <algorithm>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "shards/format.hpp"

namespace vlrerank {
namespace {

using namespace shards;

/// Shards open for reading, at most `limit` at a time: sets have more shards than a process may
/// have files.
class FileCache {
 public:
  static constexpr std::size_t limit = 128;

  std::shared_ptr<InputFile const> open(std::size_t number, std::filesystem::path const& path) {
    std::lock_guard const lock(mutex_);
    if (entries_.size() <= number) entries_.resize(number + 1);
    auto& entry = entries_[number];
    entry.used = ++clock_;
    if (entry.file) return entry.file;
    auto file = std::make_shared<InputFile const>(path);
    if (open_ >= limit) {
      auto const oldest = std::min_element(
          entries_.begin(), entries_.end(), [](Entry const& left, Entry const& right) {
            return (left.file ? left.used : never) < (right.file ? right.used : never);
          });
      oldest->file.reset();
      --open_;
    }
    ++open_;
    return entry.file = std::move(file);
  }

 private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  struct Entry {
    std::shared_ptr<InputFile const> file;
    std::uint64_t used = 0;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::size_t open_ = 0;
  std::uint64_t clock_ = 0;
};

/// Where an array lies; the index keeps this of the arrays that are read row by row.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

struct Shard {
  std::filesystem::path path;
  std::int64_t first_row = 0;
  std::vector<std::string> files;
  std::vector<std::uint32_t> first_pair;  // [G + 1]
  std::vector<std::int64_t> first_token;  // [G]
  std::vector<std::int32_t> prefix;       // [G]
  std::vector<std::int32_t> patches;      // [G]
  std::vector<std::int32_t> pair_tokens;  // [P]
  std::vector<float> labels;              // [P]
  Place tokens, pixels, source_line, source_file, row_id_offsets, row_ids, media_offsets, media,
      row_xxh3, cut_tokens, pair_media_offsets, pair_media, image_grid, image_video, image_offsets,
      image_seconds_offsets, image_seconds, image_xxh3;

  std::size_t rows() const { return prefix.size(); }
};

std::vector<std::int32_t> patches_of_rows(Index const& index, std::filesystem::path const& path) {
  std::vector<std::int32_t> patches(index.prefix_end.size());
  for (std::size_t row = 0; row < patches.size(); ++row) {
    std::int64_t sum = 0;
    for (auto i = index.media_offsets[row]; i < index.media_offsets[row + 1]; ++i) {
      auto const image = 3 * static_cast<std::size_t>(index.media[static_cast<std::size_t>(i)]);
      sum += std::int64_t{index.image_grid[image]} * index.image_grid[image + 1] *
             index.image_grid[image + 2];
    }
    VLR_INPUT(sum <= std::numeric_limits<std::int32_t>::max(),
              text(path.string(), ": row ", row, " has ", sum, " patches"), remake);
    patches[row] = static_cast<std::int32_t>(sum);
  }
  return patches;
}

Shard keep(OpenedShard const& opened, std::filesystem::path const& path) {
  auto const& index = opened.index;
  auto const place = [&](char const* name) {
    auto const* array = opened.layout.array(name);
    return Place{array->offset, array->elements()};
  };
  Shard shard;
  shard.path = path;
  shard.files = nlohmann::json::parse(index.files).get<std::vector<std::string>>();
  shard.first_pair.assign(index.group_offsets.begin(), index.group_offsets.end());
  for (std::size_t row = 0; row < index.prefix_end.size(); ++row)
    shard.first_token.push_back(
        index.pair_offsets[static_cast<std::size_t>(index.group_offsets[row])]);
  shard.prefix = index.prefix_end;
  shard.patches = patches_of_rows(index, path);
  for (std::size_t pair = 0; pair < index.labels.size(); ++pair)
    shard.pair_tokens.push_back(
        static_cast<std::int32_t>(index.pair_offsets[pair + 1] - index.pair_offsets[pair]));
  shard.labels = index.labels;
  shard.first_token.shrink_to_fit();
  shard.pair_tokens.shrink_to_fit();
  shard.tokens = place("tokens");
  shard.pixels = place("pixels");
  shard.source_line = place("source_line");
  shard.source_file = place("source_file");
  shard.row_id_offsets = place("row_id_offsets");
  shard.row_ids = place("row_ids");
  shard.media_offsets = place("media_offsets");
  shard.media = place("media");
  shard.row_xxh3 = place("row_xxh3");
  shard.cut_tokens = place("cut_tokens");
  shard.pair_media_offsets = place("pair_media_offsets");
  shard.pair_media = place("pair_media");
  shard.image_grid = place("image_grid");
  shard.image_video = place("image_video");
  shard.image_offsets = place("image_offsets");
  shard.image_seconds_offsets = place("image_seconds_offsets");
  shard.image_seconds = place("image_seconds");
  shard.image_xxh3 = place("image_xxh3");
  return shard;
}

/// Reads one row of one shard; every number from the file is checked before it is used.
class RowReader {
 public:
  RowReader(Shard const& shard, InputFile const& file, std::size_t row)
      : shard_(shard), file_(file), row_(row) {}

  StoredRow read() const {
    StoredRow stored;
    auto const first = shard_.first_pair[row_], last = shard_.first_pair[row_ + 1];
    stored.row.prefix_end = shard_.prefix[row_];
    stored.row.line = one<std::int64_t>(shard_.source_line, row_);
    auto const file_number = one<std::int32_t>(shard_.source_file, row_);
    require(file_number >= 0 && static_cast<std::size_t>(file_number) < shard_.files.size());
    stored.file = shard_.files[static_cast<std::size_t>(file_number)];
    auto const id = bounds(shard_.row_id_offsets, row_, shard_.row_ids);
    auto const letters = slice<std::uint8_t>(shard_.row_ids, id.offset, id.count);
    stored.id.assign(letters.begin(), letters.end());
    auto const hashes = read_media(stored);
    read_pairs(stored.row, first, last);
    VLR_INPUT(hash_row(stored.row, hashes, stored.id, stored.file) ==
                  one<std::uint64_t>(shard_.row_xxh3, row_),
              text(shard_.path.string(), ": row ", row_, " (", stored.file, ":", stored.row.line,
                   ") is damaged: its checksum differs"),
              remake);
    return stored;
  }

 private:
  void require(bool condition) const {
    VLR_INPUT(condition,
              text(shard_.path.string(), ": row ", row_,
                   " is damaged, or the file was changed while it was open"),
              remake);
  }

  template <class T>
  void read(Place const& place, std::uint64_t begin, std::span<T> out) const {
    require(begin <= place.count && out.size() <= place.count - begin);
    file_.read_at(place.offset + begin * sizeof(T), std::as_writable_bytes(out));
  }

  template <class T>
  std::vector<T> slice(Place const& place, std::uint64_t begin, std::uint64_t count) const {
    require(begin <= place.count && count <= place.count - begin);  // before memory is taken
    std::vector<T> values(count);
    read(place, begin, std::span<T>(values));
    return values;
  }

  template <class T>
  T one(Place const& place, std::uint64_t at) const {
    T value{};
    read(place, at, std::span<T>(&value, 1));
    return value;
  }

  /// The part of `divided` that element `at` of `offsets` begins.
  Place bounds(Place const& offsets, std::uint64_t at, Place const& divided) const {
    std::int64_t ends[2] = {0, 0};
    read(offsets, at, std::span<std::int64_t>(ends));
    require(ends[0] >= 0 && ends[0] <= ends[1] &&
            static_cast<std::uint64_t>(ends[1]) <= divided.count);
    return {static_cast<std::uint64_t>(ends[0]), static_cast<std::uint64_t>(ends[1] - ends[0])};
  }

  std::vector<ImageHash> read_media(StoredRow& stored) const {
    auto const range = bounds(shard_.media_offsets, row_, shard_.media);
    auto const media = slice<std::int32_t>(shard_.media, range.offset, range.count);
    std::vector<ImageHash> hashes;
    for (auto const number : media) {
      require(number >= 0 && static_cast<std::uint64_t>(number) < shard_.image_video.count);
      auto const image = static_cast<std::uint64_t>(number);
      MediumGrid medium;
      std::int32_t grid[3] = {0, 0, 0};
      read(shard_.image_grid, 3 * image, std::span<std::int32_t>(grid));
      medium.grid = {grid[0], grid[1], grid[2]};
      medium.video = one<std::uint8_t>(shard_.image_video, image) != 0;
      auto const times = bounds(shard_.image_seconds_offsets, image, shard_.image_seconds);
      medium.seconds = slice<double>(shard_.image_seconds, times.offset, times.count);
      auto const bytes = bounds(shard_.image_offsets, image, shard_.pixels);
      constexpr std::int32_t most = 1 << 20;
      require(grid[0] > 0 && grid[1] > 0 && grid[2] > 0 && grid[0] < most && grid[1] < most &&
              grid[2] < most &&
              std::int64_t{grid[1]} * grid[2] < (std::int64_t{1} << 31) / grid[0]);
      auto const size = static_cast<std::uint64_t>(pixel_bytes(medium));
      require(size <= bytes.count);
      stored.pixels.push_back(slice<std::uint8_t>(shard_.pixels, bytes.offset, size));
      hashes.push_back(hash_image(medium, stored.pixels.back()));
      ImageHash wanted{};
      read(shard_.image_xxh3, 2 * image, std::span<std::uint64_t>(wanted));
      VLR_INPUT(hashes.back() == wanted,
                text(shard_.path.string(), ": image ", number, " of row ", row_, " (", stored.file,
                     ":", stored.row.line, ") is damaged: its checksum differs"),
                remake);
      stored.row.media.push_back(std::move(medium));
    }
    return hashes;
  }

  void read_pairs(EncodedRow& row, std::uint32_t first, std::uint32_t last) const {
    auto const cuts = slice<std::int32_t>(shard_.cut_tokens, first, last - first);
    auto const ends = slice<std::int64_t>(shard_.pair_media_offsets, first, last - first + 1);
    require(ends.front() >= 0 && std::is_sorted(ends.begin(), ends.end()));
    auto const media =
        slice<std::int32_t>(shard_.pair_media, static_cast<std::uint64_t>(ends.front()),
                            static_cast<std::uint64_t>(ends.back() - ends.front()));
    auto token = static_cast<std::uint64_t>(shard_.first_token[row_]);
    for (auto pair = first; pair < last; ++pair) {
      auto const i = pair - first;
      EncodedPair encoded;
      encoded.label = shard_.labels[pair];
      encoded.cut_tokens = cuts[i];
      encoded.ids = slice<std::int32_t>(shard_.tokens, token,
                                        static_cast<std::uint64_t>(shard_.pair_tokens[pair]));
      token += encoded.ids.size();
      encoded.media.assign(media.begin() + (ends[i] - ends[0]),
                           media.begin() + (ends[i + 1] - ends[0]));
      for (auto const medium : encoded.media)
        require(medium >= 0 && static_cast<std::size_t>(medium) < row.media.size());
      row.pairs.push_back(std::move(encoded));
    }
  }

  Shard const& shard_;
  InputFile const& file_;
  std::size_t row_;
};

}  // namespace

struct ShardSet::State {
  std::string name;
  ShardRecipe recipe;
  std::vector<ShardFile> listed;
  std::vector<Shard> shards;
  std::int64_t rows = 0;
  mutable FileCache files;

  void add(OpenedShard const& opened, std::filesystem::path const& path) {
    shards.push_back(keep(opened, path));
    shards.back().first_row = rows;
    rows += opened.summary.rows;
  }

  /// Number of the shard that holds row i.
  std::size_t shard_of(std::int64_t i) const {
    VLR_REQUIRE(i >= 0 && i < rows, text("row ", i, " of a set of ", rows),
                "this is a bug in the caller: pass 0 <= i < rows()");
    auto const after = std::upper_bound(
        shards.begin(), shards.end(), i,
        [](std::int64_t row, Shard const& shard) { return row < shard.first_row; });
    return static_cast<std::size_t>(after - shards.begin() - 1);
  }
};

ShardSet::ShardSet(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardSet::ShardSet(ShardSet&&) noexcept = default;
ShardSet& ShardSet::operator=(ShardSet&&) noexcept = default;
ShardSet::~ShardSet() = default;

ShardSet ShardSet::open(std::filesystem::path const& directory) {
  auto manifest = read_manifest(directory);
  auto state = std::make_unique<State>();
  for (auto const& listed : manifest.shards) {
    auto const path = directory / listed.file;
    VLR_INPUT(std::filesystem::exists(path), text(path.string(), " is missing"), remake);
    auto const bytes = std::filesystem::file_size(path);
    VLR_INPUT(bytes == listed.bytes,
              text(path.string(), " has ", bytes, " bytes, the manifest says ", listed.bytes),
              remake);
    auto const opened = open_shard_file(path);
    auto const& summary = opened.summary;
    auto const difference = recipe_difference(opened.recipe, manifest.recipe);
    VLR_INPUT(difference.empty() && opened.recipe.sources == manifest.recipe.sources,
              text(path.string(), " was made in another way than the manifest says: ",
                   difference.empty() ? "other sources" : difference),
              remake);
    VLR_INPUT(summary.index == listed.index && summary.rows == listed.rows &&
                  summary.pairs == listed.pairs && summary.tokens == listed.tokens &&
                  summary.images == listed.images,
              text(path.string(), " is not the file that the manifest lists"), remake);
    state->add(opened, path);
  }
  state->name = manifest.name;
  state->recipe = std::move(manifest.recipe);
  state->listed = std::move(manifest.shards);
  return ShardSet(std::move(state));
}

ShardSet ShardSet::open_shard(std::filesystem::path const& file) {
  auto opened = open_shard_file(file);
  auto state = std::make_unique<State>();
  state->add(opened, file);
  state->name = file.stem().string();
  state->recipe = std::move(opened.recipe);
  state->listed = {opened.summary};
  return ShardSet(std::move(state));
}

std::int64_t ShardSet::rows() const {
  return state_->rows;
}

std::string const& ShardSet::name() const {
  return state_->name;
}

ShardRecipe const& ShardSet::recipe() const {
  return state_->recipe;
}

std::vector<ShardFile> const& ShardSet::shards() const {
  return state_->listed;
}

RowIndex ShardSet::index(std::int64_t i) const {
  auto const number = state_->shard_of(i);
  auto const& shard = state_->shards[number];
  auto const row = static_cast<std::size_t>(i - shard.first_row);
  auto const first = shard.first_pair[row], last = shard.first_pair[row + 1];
  return {static_cast<std::int32_t>(number),
          static_cast<std::int32_t>(row),
          shard.prefix[row],
          {shard.pair_tokens.begin() + first, shard.pair_tokens.begin() + last},
          {shard.labels.begin() + first, shard.labels.begin() + last},
          shard.patches[row]};
}

StoredRow ShardSet::read(std::int64_t i) const {
  auto const number = state_->shard_of(i);
  auto const& shard = state_->shards[number];
  auto const file = state_->files.open(number, shard.path);
  return RowReader(shard, *file, static_cast<std::size_t>(i - shard.first_row)).read();
}

void ShardSet::require_recipe(ShardRecipe const& wanted) const {
  auto const difference = recipe_difference(state_->recipe, wanted);
  VLR_INPUT(difference.empty(),
            text("the shard set ", state_->name, " was made in another way: ", difference),
            "run `vlrerank prepare` again with the options of this run, or give this run the "
            "options of the set");
}

bool looks_like_shards(std::filesystem::path const& path) {
  return std::filesystem::is_directory(path);
}

}  // namespace vlrerank
