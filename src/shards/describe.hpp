// shards/describe.hpp -- what `vlrerank inspect` says about a shard set.
#pragma once

#include <filesystem>
#include <string>

namespace vlrerank {

/// Several lines of plain text: counts, lengths, recipe, sources, one line a shard.
/// @param path  a set's folder, or one shard file
/// Throws Error (exit 3) as ShardSet::open does.
std::string describe_shards(std::filesystem::path const& path);

}  // namespace vlrerank
