// config/arguments.hpp -- cuts a command line into names and the values that follow them.
// Boost.Program_options stays behind this header.
#pragma once

#include <string>
#include <vector>

namespace vlrerank {

struct Argument {
  std::string name;  ///< with dashes, without leading ones; "" for what follows no name
  std::vector<std::string> values;  ///< everything up to the next name
};

/// `name` with `-` for every `_`.
std::string with_dashes(std::string name);

/// @param options  names that exist, with dashes; "help" and "config" always do. Names that do not
///                 exist come back without the values that follow them.
std::vector<Argument> cut_arguments(std::vector<std::string> const& arguments,
                                    std::vector<std::string> const& options);

}  // namespace vlrerank
