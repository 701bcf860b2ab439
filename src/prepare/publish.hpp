// prepare/publish.hpp -- blocks become shards, and shards become a set.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prepare/blocks.hpp"

namespace vlrerank {

/// Blocks [first, last) make one shard.
struct Cut {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// A new shard begins where the next block would lift it above `limit` bytes.
std::vector<Cut> cut_blocks(std::vector<std::int64_t> const& block_bytes, std::int64_t limit);
std::string to_json(std::vector<Cut> const& cuts);
/// Nothing when the file is missing or damaged.
std::optional<std::vector<Cut>> read_cuts(std::filesystem::path const& path);

/// Joins the blocks of a cut into shard `number` of the work folder and removes them; an earlier
/// run's shard stands when it is whole. Throws Error (exit 3) when a block is lost or damaged.
void assemble(WorkFolder const& work, PrepareRequest const& request, ShardRecipe const& recipe,
              Cut const& cut, int number);

/// Moves the shards of the work folder into the set's folder, in place of an older set, writes
/// prepare-report.json, prepare-rows.jsonl, media.jsonl and, last, manifest.json; then removes
/// the work folder. Can be repeated after a kill at any point.
PrepareResult publish(WorkFolder const& work, PrepareRequest const& request,
                      ShardRecipe const& recipe, std::vector<Cut> const& cuts);

/// Whether the folder holds the set of this recipe with all shards whole. Media not looked at.
bool is_published(PrepareRequest const& request, ShardRecipe const& recipe);
/// The media files of a published set that are this rank's to look at are all unchanged.
bool media_unchanged(PrepareRequest const& request, int rank, int ranks);
/// What publish() returned for the set that is there.
PrepareResult read_published(PrepareRequest const& request);

}  // namespace vlrerank
