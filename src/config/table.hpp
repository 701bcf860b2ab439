// config/table.hpp -- the commands and their option tables.
// Adding an option: one row in *_rows.cpp. Adding a command: one entry of commands().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/option.hpp"
#include "config/settings.hpp"

namespace vlrerank {

struct Command {
  std::string name;
  std::string summary;
  std::string example;  ///< a short command line that works
  std::function<std::vector<Option>(Settings&)> table;
};

/// In the order of the help text.
std::vector<Command> const& commands();

/// Throws Error (exit 2) with the nearest name when there is no such command.
Command const& find_command(std::string const& name);

}  // namespace vlrerank
