// config/record.cpp -- the run's record: every option of a command with its value, as JSON.
#include <nlohmann/json.hpp>

#include "config/options.hpp"
#include "config/table.hpp"

namespace vlrerank {

std::string to_json(std::string const& command, Settings const& settings) {
  Settings copy = settings;
  nlohmann::ordered_json record = nlohmann::ordered_json::object();
  for (auto const& option : find_command(command).table(copy))
    // How this attempt began is no property of the run: its record starts a run of its own.
    if (option.name != "resume" && option.name != "overwrite")
      std::visit([&](auto const* field) { record[option.name] = *field; }, option.slot);
  return record.dump(2) + "\n";
}

}  // namespace vlrerank
