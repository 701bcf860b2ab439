// prepare/sources.hpp -- the input files: what they hold, and which of their rows are wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows.hpp"

namespace vlrerank {

/// One input as it was named, and what its file holds.
struct Source {
  std::string path;
  std::int64_t wanted = -1;  ///< rows of a sample; -1: all
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  ///< of the file as it lies, compressed or not
};

/// "path" or "path#count"; a file whose name holds a '#' is taken by that name. The file is not
/// read. Throws Error (exit 2) for a wrong count.
Source parse_source(std::string const& input);

/// The sources with the row options and the seed, as JSON: ShardRecipe::sources.
std::string sources_json(std::vector<Source> const& sources, RowOptions const& rows,
                         std::uint64_t seed);

/// Number of rows (lines that are not blank) of a file.
std::int64_t count_rows(std::string const& path);

/// The wanted ones of `total` rows: true at `wanted` places that depend on (seed, number) alone.
/// All, when `wanted` is -1 or not below `total`.
std::vector<bool> sample_rows(std::int64_t total, std::int64_t wanted, std::uint64_t seed,
                              std::uint64_t number);

/// Calls `visit(position, source, line, bytes)` for the wanted rows of all sources in order;
/// position counts them from 0.
using RowVisit = std::function<void(std::int64_t, Source const&, std::int64_t, std::string_view)>;
void for_each_row(std::vector<Source> const& sources, std::vector<std::int64_t> const& totals,
                  std::uint64_t seed, RowVisit const& visit);

}  // namespace vlrerank
