// shards/row_reader.cpp -- a row of text costs one pread, one of pictures some more for each.
#include "shards/row_reader.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace vlrerank::shards {
namespace {

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

/// Reads one row of one shard; every number from the file is checked before it is used.
class RowReader {
 public:
  RowReader(Shard const& shard, InputFile const& file, std::size_t row)
      : shard_(shard), file_(file), row_(row) {}

  StoredRow read() const {
    StoredRow stored;
    auto const first = shard_.first_pair[row_], last = shard_.first_pair[row_ + 1];
    stored.row.prefix_end = shard_.prefix[row_];
    stored.row.line = shard_.source_line[row_];
    stored.file = shard_.files[static_cast<std::size_t>(shard_.source_file[row_])];
    auto const id = range(shard_.first_letter);
    stored.id.resize(id.count);
    read(shard_.row_ids, id.offset, std::span<char>(stored.id));
    auto const hashes = read_media(stored);
    read_pairs(stored.row, first, last);
    VLR_INPUT(hash_row(stored.row, hashes, stored.id, stored.file) == shard_.row_xxh3[row_],
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
    if (out.empty()) return;
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

  /// This row's part of what `offsets`, checked when the shard was opened, divide.
  Place range(std::vector<std::int64_t> const& offsets) const {
    return {static_cast<std::uint64_t>(offsets[row_]),
            static_cast<std::uint64_t>(offsets[row_ + 1] - offsets[row_])};
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
    auto const place = range(shard_.first_medium);
    auto const media = slice<std::int32_t>(shard_.media, place.offset, place.count);
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
    row.pairs.resize(last - first);
    std::uint64_t count = 0;
    for (auto pair = first; pair < last; ++pair)
      count += static_cast<std::uint64_t>(shard_.pair_tokens[pair]);
    auto const tokens = slice<std::int32_t>(
        shard_.tokens, static_cast<std::uint64_t>(shard_.first_token[row_]), count);
    auto token = tokens.begin();
    for (auto pair = first; pair < last; ++pair) {
      auto& encoded = row.pairs[pair - first];
      auto const end = token + shard_.pair_tokens[pair];
      encoded.label = shard_.labels[pair];
      encoded.ids.assign(token, end);
      token = end;
    }
    if (shard_.is_cut[row_]) {
      auto const cuts = slice<std::int32_t>(shard_.cut_tokens, first, last - first);
      for (std::size_t i = 0; i < cuts.size(); ++i) row.pairs[i].cut_tokens = cuts[i];
    }
    if (!row.media.empty()) read_pair_media(row, first, last);
  }

  void read_pair_media(EncodedRow& row, std::uint32_t first, std::uint32_t last) const {
    auto const ends = slice<std::int64_t>(shard_.pair_media_offsets, first, last - first + 1);
    require(ends.front() >= 0 && std::is_sorted(ends.begin(), ends.end()));
    auto const media =
        slice<std::int32_t>(shard_.pair_media, static_cast<std::uint64_t>(ends.front()),
                            static_cast<std::uint64_t>(ends.back() - ends.front()));
    for (auto const medium : media)
      require(medium >= 0 && static_cast<std::size_t>(medium) < row.media.size());
    for (std::size_t i = 0; i < row.pairs.size(); ++i)
      row.pairs[i].media.assign(media.begin() + (ends[i] - ends[0]),
                                media.begin() + (ends[i + 1] - ends[0]));
  }

  Shard const& shard_;
  InputFile const& file_;
  std::size_t row_;
};

}  // namespace

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
  shard.source_line = index.source_line;
  shard.source_file = index.source_file;
  shard.row_xxh3 = index.row_xxh3;
  shard.first_medium = index.media_offsets;
  shard.first_letter = index.row_id_offsets;
  for (std::size_t row = 0; row < index.prefix_end.size(); ++row)
    shard.is_cut.push_back(std::any_of(index.cut_tokens.begin() + index.group_offsets[row],
                                       index.cut_tokens.begin() + index.group_offsets[row + 1],
                                       [](std::int32_t cut) { return cut != 0; }));
  for (std::size_t pair = 0; pair < index.labels.size(); ++pair)
    shard.pair_tokens.push_back(
        static_cast<std::int32_t>(index.pair_offsets[pair + 1] - index.pair_offsets[pair]));
  shard.labels = index.labels;
  shard.first_token.shrink_to_fit();
  shard.pair_tokens.shrink_to_fit();
  shard.tokens = place("tokens");
  shard.pixels = place("pixels");
  shard.row_ids = place("row_ids");
  shard.media = place("media");
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

StoredRow read_row(Shard const& shard, InputFile const& file, std::size_t row) {
  return RowReader(shard, file, row).read();
}

}  // namespace vlrerank::shards
