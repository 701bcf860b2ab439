// config/config_file.hpp -- reads the file of --config.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace vlrerank {

/// Names as written, each with its values as they would be typed, in the file's order.
using FileEntries = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A JSON object (flat, as to_json() writes it), or lines `name = value`: # after a blank begins a
/// comment, double quotes keep blanks; `is_list(name)` tells whether blanks separate values.
/// Throws Error (exit 2).
FileEntries read_config_file(std::string const& path,
                             std::function<bool(std::string const&)> const& is_list);

/// A JSON object in one text; `origin` names it in messages.
FileEntries parse_json_entries(std::string const& json, std::string const& origin);

}  // namespace vlrerank
