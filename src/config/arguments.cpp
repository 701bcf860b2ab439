// config/arguments.cpp -- Boost.Program_options as the cutter of command lines.
#include "config/arguments.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <set>

#include "config/foreign.hpp"

namespace vlrerank {

namespace po = boost::program_options;

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::vector<Argument> cut_arguments(std::vector<std::string> const& arguments,
                                    std::vector<std::string> const& options) {
  std::set<std::string> names = {"help", "config"};
  names.insert(options.begin(), options.end());
  std::vector<std::string> words;
  for (auto const& argument : arguments) {
    if (argument.compare(0, 2, "--") != 0 || argument.size() == 2) {
      words.push_back(argument == "-h" ? "--help" : argument);
      continue;
    }
    auto const equals = argument.find('=');
    auto const name = with_dashes(argument.substr(2, equals - 2));
    if (find_foreign(name) != nullptr) names.insert(name);
    bool const empty_value = equals != std::string::npos && equals + 1 == argument.size();
    words.push_back("--" + name);
    if (empty_value)
      words.emplace_back();
    else if (equals != std::string::npos)
      words.back() += argument.substr(equals);
  }
  po::options_description known;
  for (auto const& name : names)
    known.add_options()(name.c_str(),
                        po::value<std::vector<std::string>>()->multitoken()->zero_tokens(), "");
  namespace style = po::command_line_style;
  auto const parsed =
      po::command_line_parser(words)
          .options(known)
          .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
          .allow_unregistered()
          .run();
  std::vector<Argument> cut;
  for (auto const& option : parsed.options) cut.push_back({option.string_key, option.value});
  return cut;
}

}  // namespace vlrerank
