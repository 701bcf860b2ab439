// prepare/blocks.hpp -- the unit of work: a fixed run of rows, encoded by one rank into a small
// shard of its own. Which rows make a block depends on the input alone, never on the ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "prepare/media_cache.hpp"
#include "prepare/prepare.hpp"
#include "prepare/sources.hpp"

namespace vlrerank {

/// Where the work of one set lies until it is published.
struct WorkFolder {
  std::filesystem::path path;

  std::filesystem::path block_shard(std::int64_t block) const;
  std::filesystem::path block_note(std::int64_t block) const;
  /// Says up to which block the ranks shall go; missing: to the end.
  std::filesystem::path stop() const { return path / "stop"; }
  /// The identity of the work: recipe and cutting rules.
  std::filesystem::path identity() const { return path / "work.json"; }
  /// Written when all blocks are done: which blocks make which shard.
  std::filesystem::path cuts() const { return path / "cuts.json"; }
  /// Written when all shards are done: the list of them.
  std::filesystem::path shards() const { return path / "shards.json"; }
};

/// What is known of a finished block.
struct BlockNote {
  PrepareReport report;
  std::int64_t bytes = 0;          ///< of tokens and pixels
  std::vector<std::string> lines;  ///< JSON lines of rows rejected, cut or warned about
  std::vector<MediaStamp> media;   ///< files it was made of
};
std::string to_json(BlockNote const& note);
/// Nothing when the file is missing or damaged.
std::optional<BlockNote> read_note(std::filesystem::path const& path);
/// Whether every media file still is as it was.
bool is_fresh(std::vector<MediaStamp> const& media);

/// Rows of a block for a set of `rows` rows: enough blocks to share out, few enough to name.
std::int64_t block_rows(std::int64_t rows);

/// Encodes this rank's blocks, those with block % ranks == rank, one row in memory at a time.
/// Blocks whose note and shard are there from an earlier run are left as they are.
///
/// Stops early, and has the other ranks stop, when this rank alone has seen more bad rows than
/// allowed. @param allowed  bad rows; 0 when strict
/// @return the bad rows seen by this rank, the first ones in full
PrepareReport encode_blocks(PrepareRequest const& request, ShardRecipe const& recipe,
                            std::vector<Source> const& sources,
                            std::vector<std::int64_t> const& totals, WorkFolder const& work,
                            int rank, int ranks, std::int64_t allowed);

}  // namespace vlrerank
