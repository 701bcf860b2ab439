// config/options.hpp -- one table row per option: parsing, help, checks and the run record follow.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"

namespace vlrerank {

/// A parsed command line.
struct Parsed {
  Settings settings;
  std::vector<std::string> notices;  ///< ignored flags, converted aliases: one line each, for the log
  bool help = false;                 ///< --help was asked for: print help_text() and leave with 0
};

/// @param command    "train", "prepare", ...
/// @param arguments  what follows the command
/// Accepts `_` for `-`, ms-swift 3.x and 4.x names, `--config FILE` (JSON or name = value lines; the command line
/// wins) and the environment variables of ms-swift named in the table.
/// Throws Error (exit 2): unknown option with the nearest name, value out of range, a flag whose
/// effect we cannot give with the nearest of ours.
Parsed parse_options(std::string const& command, std::vector<std::string> const& arguments);

/// Options of a command grouped, with defaults; `command` empty: the list of commands.
std::string help_text(std::string const& command);

/// The resolved configuration as JSON, every option of the command with its value; can be given
/// back as --config.
std::string to_json(std::string const& command, Settings const& settings);

}  // namespace vlrerank
