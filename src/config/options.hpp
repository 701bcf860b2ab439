// config/options.hpp -- one table row per option: parsing, help, checks and the run record follow.
// The rows stand in config/*_rows.cpp, ms-swift's other names in config/foreign.cpp.
#pragma once

#include <string>
#include <vector>

#include "config/foreign.hpp"
#include "config/settings.hpp"

namespace vlrerank {

/// A parsed command line.
struct Parsed {
  Settings settings;
  std::vector<std::string>
      notices;        ///< ignored flags, converted values: one line each, for the log
  bool help = false;  ///< --help was asked for: print help_text() and leave with 0
};

/// @param command      "train", "prepare", ...
/// @param arguments    what follows the command
/// @param environment  looks up ms-swift's variables (MAX_NEGATIVE_SAMPLES, ...); app/ passes
/// getenv Accepts `_` for `-`, ms-swift 3.x and 4.x names and `--config FILE` (JSON or `name =
/// value` lines). The command line wins over the file, the file over the environment, that over
/// defaults. The settings are resolved. Throws Error (exit 2): unknown option with the nearest
/// name, value out of range, something required missing, a flag whose effect we cannot give with
/// the nearest of ours.
Parsed parse_options(std::string const& command, std::vector<std::string> const& arguments,
                     Environment const& environment = {});

/// Gives settings that stand for "as another one" their value: learning rates, evaluation, seeds,
/// the cache directory. What depends on the data or the number of ranks stays as it is
/// (gradient_accumulation_steps, global_batch_size, decay_steps, max_bad_rows). Idempotent.
void resolve(Settings& settings, std::string const& command);

/// Options of a command grouped, with defaults; `command` empty: the list of commands.
std::string help_text(std::string const& command);

/// The resolved configuration as JSON, every option of the command with its value; can be given
/// back as --config.
std::string to_json(std::string const& command, Settings const& settings);

/// docs/options.md: every option of every command, ms-swift's names that are ignored or refused.
std::string options_markdown();

}  // namespace vlrerank
