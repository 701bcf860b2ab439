// train/run_directory.cpp -- creating, linking and pruning.
#include "train/run_directory.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view draft_suffix = ".partial";

std::optional<std::int64_t> step_of(std::string const& name) {
  if (!name.starts_with(prefix)) return {};
  std::int64_t step = 0;
  auto const* first = name.data() + prefix.size();
  auto const* last = name.data() + name.size();
  auto const [end, error] = std::from_chars(first, last, step);
  if (error != std::errc() || end != last) return {};
  return step;
}

bool belongs_to_a_run(fs::path const& entry) {
  auto const name = entry.filename().string();
  for (auto const* known : {"config.json", "plan.json", "metrics.jsonl", "best", "last"})
    if (name == known) return true;
  return name.starts_with(prefix) || name.starts_with("events.out.tfevents.");
}

}  // namespace

RunDirectory RunDirectory::create(fs::path path, Existing existing) {
  std::error_code error;
  bool used = false;
  if (fs::is_directory(path, error))
    for (auto const& entry : fs::directory_iterator(path, error))
      used = used || belongs_to_a_run(entry.path());
  bool const ours =
      fs::exists(path / "metrics.jsonl", error) && fs::exists(path / "plan.json", error);
  VLR_USAGE(!used || ours || existing == Existing::refuse,
            text("--output-dir ", path.string(), " holds files that are no run of vlrerank"),
            "choose another --output-dir");
  VLR_USAGE(!used || existing != Existing::refuse,
            text("--output-dir ", path.string(), " already holds a run"),
            "choose another --output-dir, or give --resume auto to go on with it, or --overwrite");
  if (used && existing == Existing::overwrite)
    for (auto const& entry : fs::directory_iterator(path))
      if (belongs_to_a_run(entry.path())) {
        fs::remove_all(entry.path(), error);  // a link is removed, not followed
        VLR_IO(!error, text("cannot remove ", entry.path().string(), ": ", error.message()),
               "check the permissions, or choose another --output-dir");
      }
  if (used && existing == Existing::resume)
    for (auto const& entry : fs::directory_iterator(path))
      if (auto const name = entry.path().filename().string();
          name.starts_with(prefix) && name.ends_with(draft_suffix))
        fs::remove_all(entry.path(), error);  // of an attempt that was killed while saving
  fs::create_directories(path, error);
  VLR_IO(!error && fs::is_directory(path),
         text("cannot create --output-dir ", path.string(), ": ", error.message()),
         "check the path, the permissions and the free space");
  return RunDirectory(std::move(path));
}

fs::path RunDirectory::checkpoint(std::int64_t step) const {
  return path_ / text(prefix, step);
}

std::vector<std::int64_t> RunDirectory::checkpoints() const {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (auto const& entry : fs::directory_iterator(path_, error))
    if (auto const step = step_of(entry.path().filename().string());
        step && !entry.is_symlink() && entry.is_directory() &&
        fs::exists(entry.path() / "trainer_state.json"))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

void RunDirectory::point(std::string const& name, std::int64_t step) const {
  auto const draft = path_ / text(".", name, ".", getpid());
  std::error_code error;
  fs::remove(draft, error);
  fs::create_directory_symlink(text(prefix, step), draft, error);
  if (!error) fs::rename(draft, path_ / name, error);
  VLR_IO(!error, text("cannot set the link ", (path_ / name).string(), ": ", error.message()),
         "the file system must allow symbolic links");
}

std::optional<std::int64_t> RunDirectory::pointed(std::string const& name) const {
  std::error_code error;
  auto const target = fs::read_symlink(path_ / name, error);
  if (error) return {};
  return step_of(target.filename().string());
}

void RunDirectory::prune(std::int64_t limit) const {
  if (limit <= 0) return;
  auto steps = checkpoints();
  auto const best = pointed("best");
  auto const last = pointed("last");
  for (auto const step : steps) {
    if (static_cast<std::int64_t>(checkpoints().size()) <= limit) return;
    if (step == best || step == last) continue;
    std::error_code error;
    fs::remove_all(checkpoint(step), error);
  }
}

}  // namespace vlrerank
