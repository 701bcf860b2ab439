// config/foreign.hpp -- names of ms-swift and of torchrun that are no options of ours.
// Each is either ignored with one notice, because it changes nothing here, or refused with the
// nearest of ours. Names that mean the same as one of ours are aliases in the rows of
// config/*_rows.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vlrerank {

/// Looks a variable up as getenv does; empty: no environment.
using Environment = std::function<char const*(char const*)>;

/// What an option of ms-swift means here.
struct ForeignName {
  std::string name;                   ///< with dashes; a trailing * stands for any ending
  std::vector<std::string> harmless;  ///< values that change nothing here; {"*"}: all, {}: none
  std::string reason;                 ///< why they change nothing
  std::string remedy;                 ///< what to use instead of any other value
  std::map<std::string, std::string> keys;  ///< a JSON value: its keys, as options of ours
};

std::vector<ForeignName> const& foreign_names();

/// The row of `name` (with dashes, without leading ones), or null.
ForeignName const* find_foreign(std::string const& name);

/// True when a value changes nothing here: as listed, a trailing * standing for any ending; true
/// and false in any spelling.
bool is_harmless(ForeignName const& row, std::string const& value);

/// One line for each group of launch variables of others that is set while no MPI launcher started
/// this process, with the mpirun or srun line that does the same.
std::vector<std::string> launch_notices(std::string const& command, Environment const& environment);

}  // namespace vlrerank
