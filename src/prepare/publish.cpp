// prepare/publish.cpp -- the last steps of prepare; manifest.json is always the last file.
#include "prepare/publish.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "io/files.hpp"
#include "shards/format.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char const* report_name = "prepare-report.json";
constexpr char const* rows_name = "prepare-rows.jsonl";
constexpr char const* media_name = "media.jsonl";

std::string dump(Json const& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Shards of an older set: those that its manifest lists, and what a killed run left of `name`.
std::set<std::string> older_shards(fs::path const& folder, std::string const& name) {
  std::set<std::string> files;
  try {
    for (auto const& shard : shards::read_manifest(folder).shards) files.insert(shard.file);
  } catch (Error const&) {
  }
  for (auto const& entry : fs::directory_iterator(folder)) {
    auto const file = entry.path().filename().string();
    auto const stem = entry.path().stem().string();
    auto const digits = stem.find_last_not_of("0123456789");
    if (entry.path().extension() == ".h5" && stem.starts_with(name + "-") &&
        digits == name.size() && stem.size() > digits + 1)
      files.insert(file);
  }
  return files;
}

/// From the notes of all blocks: the report, the lines and the media list of the set.
PrepareReport write_reports(WorkFolder const& work, fs::path const& folder, std::int64_t blocks) {
  PrepareReport report;
  std::set<MediaStamp> media;
  AtomicFile rows(folder / rows_name);
  for (std::int64_t block = 0; block < blocks; ++block) {
    auto const note = read_note(work.block_note(block));
    VLR_IO(note.has_value(), text(work.block_note(block).string(), " is lost or damaged"),
           "remove the folder it lies in and run `vlrerank prepare` again");
    merge(report, note->report);
    for (auto const& line : note->lines) rows.append(line);
    media.insert(note->media.begin(), note->media.end());
  }
  rows.commit();
  AtomicFile list(folder / media_name);
  for (auto const& stamp : media)
    list.append(dump(Json{stamp.path, stamp.bytes, stamp.modified}) + "\n");
  list.commit();
  write_file(folder / report_name, to_json(report) + "\n");
  return report;
}

}  // namespace

std::vector<Cut> cut_blocks(std::vector<std::int64_t> const& block_bytes, std::int64_t limit) {
  std::vector<Cut> cuts;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < block_bytes.size(); ++i) {
    auto const block = static_cast<std::int64_t>(i);
    if (cuts.empty() || filled + block_bytes[i] > limit) {
      cuts.push_back({block, block});
      filled = 0;
    }
    filled += block_bytes[i];
    cuts.back().last = block + 1;
  }
  return cuts;
}

std::string to_json(std::vector<Cut> const& cuts) {
  Json json = Json::array();
  for (auto const& cut : cuts) json.push_back({cut.first, cut.last});
  return dump(json);
}

std::optional<std::vector<Cut>> read_cuts(fs::path const& path) {
  try {
    std::vector<Cut> cuts;
    for (auto const& cut : Json::parse(read_file(path)))
      cuts.push_back({cut.at(0).get<std::int64_t>(), cut.at(1).get<std::int64_t>()});
    return cuts;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

void assemble(WorkFolder const& work, PrepareRequest const& request, ShardRecipe const& recipe,
              Cut const& cut, int number) {
  auto const path = work.path / shards::shard_file_name(request.name, number);
  if (!fs::exists(path)) {
    ShardWriter writer(work.path, request.name, number, recipe);
    for (auto block = cut.first; block < cut.last; ++block) {
      auto const rows = ShardSet::open_shard(work.block_shard(block));
      for (std::int64_t row = 0; row < rows.rows(); ++row) writer.append(rows.read(row));
    }
    writer.finish();
  }
  for (auto block = cut.first; block < cut.last; ++block) fs::remove(work.block_shard(block));
}

PrepareResult publish(WorkFolder const& work, PrepareRequest const& request,
                      ShardRecipe const& recipe, std::vector<Cut> const& cuts) {
  auto const& folder = request.output;
  PrepareResult result;
  result.report = write_reports(work, folder, cuts.empty() ? 0 : cuts.back().last);

  auto older = older_shards(folder, request.name);
  fs::remove(folder / shards::manifest_name);  // from here on there is no set until the last line
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    auto const name = shards::shard_file_name(request.name, static_cast<int>(i));
    if (fs::exists(work.path / name)) rename_file(work.path / name, folder / name);
    older.erase(name);
    result.shards.push_back(shards::open_shard_file(folder / name).summary);
  }
  for (auto const& name : older) fs::remove(folder / name);
  write_manifest(folder, request.name, recipe, result.shards);
  fs::remove_all(work.path);
  return result;
}

bool is_published(PrepareRequest const& request, ShardRecipe const& recipe) {
  try {
    auto const manifest = shards::read_manifest(request.output);
    if (manifest.name != request.name || to_json(manifest.recipe) != to_json(recipe)) return false;
    for (auto const& shard : manifest.shards)
      if (fs::file_size(request.output / shard.file) != shard.bytes) return false;
    return fs::exists(request.output / media_name) && fs::exists(request.output / report_name);
  } catch (std::exception const&) {
    return false;
  }
}

bool media_unchanged(PrepareRequest const& request, int rank, int ranks) {
  std::int64_t number = 0;
  bool unchanged = true;
  for_each_line((request.output / media_name).string(), [&](std::int64_t, std::string_view line) {
    if (number++ % ranks != rank || !unchanged) return;
    auto const json = Json::parse(line, nullptr, false);
    unchanged = json.is_array() && json.size() == 3 && json[0].is_string() && json[1].is_number() &&
                json[2].is_number() &&
                is_fresh({{json[0].get<std::string>(), json[1].get<std::uint64_t>(),
                           json[2].get<std::int64_t>()}});
  });
  return unchanged;
}

PrepareResult read_published(PrepareRequest const& request) {
  PrepareResult result;
  result.cached = true;
  result.report = report_from_json(read_file(request.output / report_name));
  result.shards = shards::read_manifest(request.output).shards;
  return result;
}

}  // namespace vlrerank
