// train/run_directory.hpp -- the folder of a run: created, kept tidy, and never shared by accident.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vlrerank {

enum class Existing { refuse, resume, overwrite };

/// config.json, plan.json, metrics.jsonl, events.out.tfevents.*, checkpoint-N/, best, last.
class RunDirectory {
 public:
  /// Creates `path`. One that already holds a run is refused (exit 2) unless told to resume or
  /// overwrite; overwriting removes what a run writes and nothing else. Call on one rank only.
  static RunDirectory create(std::filesystem::path path, Existing existing);
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path checkpoint(std::int64_t step) const;
  /// Steps of complete checkpoints, ascending. Directories under a temporary name do not count.
  std::vector<std::int64_t> checkpoints() const;
  /// Lets the link `name` ("best", "last") point to a checkpoint, in one atomic step.
  void point(std::string const& name, std::int64_t step) const;
  std::optional<std::int64_t> pointed(std::string const& name) const;
  /// Removes the oldest checkpoints until `limit` are left; best and last stay. 0 keeps all.
  void prune(std::int64_t limit) const;

 private:
  std::filesystem::path path_;
};

}  // namespace vlrerank
