// app/data.hpp -- the data sets that a command's options name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "loader/dataset.hpp"
#include "train/session.hpp"

namespace vlrerank {

/// Opens shard sets and prepares JSONL files into the cache; one list of rows. Collective.
/// Throws Error (exit 3) when there is no row.
DataSet open_data(std::vector<std::string> const& names, Settings const& settings,
                  Tokenizer const& tokenizer, std::string const& cache, Communicator& control);

/// Prints on the root rank: the first pair of the set, decoded, with its ids.
void print_sample(DataSet const& data, Tokenizer const& tokenizer, Log const& log);

}  // namespace vlrerank
