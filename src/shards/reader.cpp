// shards/reader.cpp -- a shard set open for reading. In memory: what planning needs of each row.
// The rest comes by pread when a row is read, and is checked again, for files can change.
#include <algorithm>
#include <limits>
#include <mutex>

#include "shards/format.hpp"
#include "shards/row_reader.hpp"

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
  return read_row(shard, *file, static_cast<std::size_t>(i - shard.first_row));
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
