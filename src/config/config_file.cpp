// config/config_file.cpp -- JSON or `name = value` lines to entries.
#include "config/config_file.hpp"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"

namespace vlrerank {
namespace {

using Json = nlohmann::ordered_json;

std::string trimmed(std::string const& line) {
  auto const first = line.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(" \t\r\n") - first + 1);
}

std::string word_of(Json const& value, std::string const& name, std::string const& origin) {
  VLR_USAGE(!value.is_structured() && !value.is_null(),
            text(origin, ": ", name, " has the value ", value.dump()),
            "give a string, a number, true or false, or a list of these");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// What precedes a comment: a # at the line's beginning or after a blank, outside quotes.
std::string without_comment(std::string const& line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    bool const apart = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && !quoted && apart) return line.substr(0, i);
  }
  return line;
}

std::string without_quotes(std::string const& word) {
  bool const quoted = word.size() >= 2 && word.front() == '"' && word.back() == '"';
  return quoted ? word.substr(1, word.size() - 2) : word;
}

std::vector<std::string> split_blanks(std::string const& value) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (char c : value + " ") {
    if (c == '"') quoted = !quoted;
    if ((c == ' ' || c == '\t') && !quoted) {
      if (!word.empty()) words.push_back(without_quotes(std::exchange(word, {})));
    } else {
      word += c;
    }
  }
  return words;
}

FileEntries parse_lines(std::string const& content, std::string const& path,
                        std::function<bool(std::string const&)> const& is_list) {
  FileEntries entries;
  std::istringstream lines(content);
  std::string raw;
  for (int number = 1; std::getline(lines, raw); ++number) {
    auto const line = trimmed(without_comment(raw));
    if (line.empty()) continue;
    auto const equals = line.find('=');
    auto const name = trimmed(line.substr(0, equals));
    VLR_USAGE(equals != std::string::npos && !name.empty(),
              text(path, ":", number, ": `", line, "` is no setting"),
              "write lines `name = value`, or a JSON object as config.json of a run directory");
    auto const value = trimmed(line.substr(equals + 1));
    if (is_list(name))
      entries.emplace_back(name, split_blanks(value));
    else
      entries.emplace_back(name, std::vector<std::string>{without_quotes(value)});
  }
  return entries;
}

}  // namespace

FileEntries parse_json_entries(std::string const& json, std::string const& origin) {
  auto const parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  VLR_USAGE(parsed.is_object(), text(origin, " is not a JSON object: ", json.substr(0, 60)),
            "write {\"name\": value, ...}");
  FileEntries entries;
  for (auto const& [name, value] : parsed.items()) {
    std::vector<std::string> words;
    if (value.is_array()) {
      for (auto const& element : value) words.push_back(word_of(element, name, origin));
    } else {
      words.push_back(word_of(value, name, origin));
    }
    entries.emplace_back(name, words);
  }
  return entries;
}

FileEntries read_config_file(std::string const& path,
                             std::function<bool(std::string const&)> const& is_list) {
  std::ifstream file(path);
  std::string const content{std::istreambuf_iterator<char>(file), {}};
  VLR_USAGE(file, text("cannot read --config ", path), "check the path and its permissions");
  auto const first = content.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && content[first] == '{') return parse_json_entries(content, path);
  return parse_lines(content, path, is_list);
}

}  // namespace vlrerank
