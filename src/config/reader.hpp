// config/reader.hpp -- fills the settings of one command from its command line, a file and the
// environment, by what the rows of config/*_rows.cpp and config/foreign.cpp say.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/foreign.hpp"
#include "config/options.hpp"
#include "config/table.hpp"

namespace vlrerank {

/// Where a value came from; a later one wins.
enum class Source { environment, file, command_line };

/// Fills one command's settings from its sources.
class Reader {
 public:
  Reader(Command const& command, Parsed& parsed)
      : command_(command), parsed_(parsed), table_(command.table(parsed.settings)) {}

  void read_command_line(std::vector<std::string> const& arguments);
  void read_environment(Environment const& environment);
  /// Rules over several options, and what is missing.
  void check();

 private:
  struct Known {
    Option const* option = nullptr;
    Alias const* alias = nullptr;
  };
  struct Given {
    Source source;
    std::string spelled;  // the name that was used
  };

  Known find(std::string const& name) const;
  void read_file(std::string const& path);
  /// @return  values that the option does not take: they followed it, but belong to nobody yet
  std::vector<std::string> apply(std::string const& name, std::vector<std::string> values,
                                 Source source);
  void apply_own(Known known, std::string const& spelled, std::vector<std::string> values,
                 Source source);
  void apply_foreign(ForeignName const& row, std::string const& name,
                     std::vector<std::string> const& values, Source source);
  void set(Option const& option, std::vector<std::string> values, std::string const& spelled,
           Source source);
  [[noreturn]] void refuse_unknown(std::string const& name) const;
  void notice(std::string line) { parsed_.notices.push_back(std::move(line)); }

  Command const& command_;
  Parsed& parsed_;
  std::vector<Option> table_;
  std::map<std::string, Given> given_;
  std::map<std::string, std::vector<std::string>> lists_;  // what list options hold so far
  std::vector<std::string> unused_;                        // names in a file that others use
};

}  // namespace vlrerank
