// config/help.cpp -- help texts and docs/options.md, both loops over the option tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "config/options.hpp"
#include "config/table.hpp"
#include "core/error.hpp"

namespace vlrerank {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kOptions = 32;   // where explanations of options begin
constexpr std::size_t kCommands = 14;  // and of commands

/// `left`, then `words` wrapped at kWidth in a column that begins at `indent`.
std::string two_columns(std::string const& left, std::string const& words, std::size_t indent) {
  std::string out;
  std::string line = left + (left.size() + 2 > indent ? "\n" : "");
  if (line.back() == '\n') {
    out = line;
    line.clear();
  }
  line.resize(indent, ' ');
  std::istringstream stream(words);
  std::string word;
  bool first = true;
  while (stream >> word) {
    if (!first && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
      first = true;
    }
    line += (first ? "" : " ") + word;
    first = false;
  }
  return out + line + "\n";
}

std::string placeholder(Option const& option) {
  if (option.is_bool()) return "[true|false]";
  if (!option.choices.empty())
    return option.choices.size() > 5 ? "NAME" : fmt::format("{}", fmt::join(option.choices, "|"));
  if (option.is_list()) return "VALUE ...";
  return std::holds_alternative<std::string*>(option.slot) ? "TEXT" : "NUMBER";
}

std::string default_text(Option const& option) {
  if (option.required) return "required";
  if (!option.shown_default.empty()) return option.shown_default;
  auto const value = value_text(option);
  return value.empty() ? "none" : value;
}

std::string described(Option const& option) {
  auto out = option.help;
  if (option.choices.size() > 5) out += fmt::format(": {}", fmt::join(option.choices, ", "));
  return out;
}

std::string alias_names(Option const& option, std::string const& quote) {
  std::string out;
  for (auto const& alias : option.aliases)
    out += (out.empty() ? "" : ", ") + quote + "--" + alias.name + quote;
  return out;
}

/// Escapes what would end a table cell or be read as HTML.
std::string cell(std::string const& words) {
  if (words.find('<') != std::string::npos) return "`" + words + "`";
  std::string out;
  for (char c : words) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string markdown_rows(std::vector<Option> const& options) {
  std::string out;
  std::string group;
  for (auto const& option : options) {
    if (option.group != group) {
      group = option.group;
      out += fmt::format(
          "\n**{}**\n\n| option | default | meaning | other names |\n| --- | --- | --- | --- |\n",
          group);
    }
    auto names = alias_names(option, "`");
    for (auto const& [variable, divisor] : option.environment)
      names += fmt::format("{}env `{}`{}", names.empty() ? "" : ", ", variable,
                           divisor == 1 ? "" : fmt::format(" / {}", divisor));
    out += fmt::format("| `{}{} {}` | {} | {} | {} |\n", option.positional ? "" : "--", option.name,
                       cell(placeholder(option)), cell(default_text(option)),
                       cell(described(option)), names);
  }
  return out;
}

}  // namespace

std::string help_text(std::string const& command) {
  if (command.empty()) {
    std::string out =
        "vlrerank -- fine-tunes Qwen3-VL-Reranker on any number of ranks\n\n"
        "usage: vlrerank COMMAND [OPTION ...]\n\n";
    for (auto const& each : commands())
      out += two_columns("  " + each.name, each.summary, kCommands);
    out += two_columns("  --version", "versions of the program and its libraries", kCommands);
    out += "\n`vlrerank COMMAND --help` lists a command's options.\n";
    return out;
  }
  auto const& chosen = find_command(command);
  Settings defaults;
  auto out = fmt::format("vlrerank {} -- {}\n\nexample:\n  {}\n", chosen.name, chosen.summary,
                         chosen.example);
  std::string group;
  for (auto const& option : chosen.table(defaults)) {
    if (option.group != group) out += fmt::format("\n{}\n", group = option.group);
    out += two_columns(
        fmt::format("  {}{} {}", option.positional ? "" : "--", option.name, placeholder(option)),
        fmt::format("{} ({})", described(option), default_text(option)), kOptions);
  }
  out += "\nGeneral\n";
  out += two_columns("  --config FILE",
                     "settings as JSON (config.json of a run) or `name = value` lines; the command "
                     "line wins",
                     kOptions);
  out += two_columns("  --help", "this text", kOptions);
  out += "\n`_` and `-` are the same. Options of ms-swift 3 and 4 are accepted: docs/options.md.\n";
  return out;
}

std::string options_markdown() {
  std::string out =
      "# Options\n\n"
      "Made from the option tables (src/config/*_rows.cpp, src/config/foreign.cpp); "
      "`VLR_UPDATE_DOCS=1 config_test` writes it anew.\n\n"
      "`_` and `-` are the same. A boolean is switched on by its name alone, or takes true, false, "
      "on, "
      "off, 1, 0.\nLists take several values after one name, and may be repeated. `--config FILE` "
      "reads "
      "the same names from a JSON object\n(`config.json` of a run directory) or from `name = "
      "value` "
      "lines. The command line wins over the file, the file over\nthe environment.\n";
  Settings defaults;
  auto const training = find_command("train").table(defaults);
  auto const same = [](Option const& a, Option const& b) {
    return a.name == b.name && a.slot == b.slot && a.help == b.help &&
           alias_names(a, "") == alias_names(b, "");
  };
  auto ordered = commands();
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](auto const& c) { return c.name == "train"; });
  for (auto const& command : ordered) {
    out +=
        fmt::format("\n## {}\n\n{}.\n\n    {}\n", command.name,
                    static_cast<char>(std::toupper(command.summary[0])) + command.summary.substr(1),
                    command.example);
    std::vector<Option> own;
    std::string shared;
    for (auto const& option : command.table(defaults)) {
      auto const known = [&](Option const& other) { return same(option, other); };
      if (command.name != "train" && std::any_of(training.begin(), training.end(), known))
        shared += fmt::format("{}`--{}`", shared.empty() ? "" : ", ", option.name);
      else
        own.push_back(option);
    }
    out += markdown_rows(own);
    if (!shared.empty()) out += fmt::format("\nAs for `train`: {}.\n", shared);
  }
  out +=
      "\n## Options of ms-swift that are ignored\n\nThey change nothing here; the log names "
      "each.\n\n"
      "| option | values | why |\n| --- | --- | --- |\n";
  for (auto const& row : foreign_names())
    if (!row.harmless.empty())
      out += fmt::format(
          "| `--{}` | {} | {} |\n", row.name,
          row.harmless[0] == "*" ? "any" : fmt::format("{}", fmt::join(row.harmless, ", ")),
          cell(row.reason));
  out +=
      "\n## Options of ms-swift that are refused\n\nTheir effect cannot be given; the message "
      "names the "
      "nearest of ours.\n\n| option | use instead |\n| --- | --- |\n";
  for (auto const& row : foreign_names())
    if (!row.remedy.empty() && row.keys.empty())
      out += fmt::format("| `--{}`{} | {} |\n", row.name,
                         row.harmless.empty() ? "" : " with other values", cell(row.remedy));
  return out;
}

}  // namespace vlrerank
