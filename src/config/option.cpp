// config/option.cpp -- text to value, with limits; and the setters of a row.
#include "config/option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <type_traits>

#include "core/error.hpp"

namespace vlrerank {
namespace {

std::string lower(std::string word) {
  for (auto& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return word;
}

std::string listed(std::vector<std::string> const& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string limits_text(Option const& option) {
  bool const low = option.least > std::numeric_limits<double>::lowest();
  bool const high = option.most < std::numeric_limits<double>::max();
  auto const about = text(" (", option.help, ")");
  if (low && high) return fmt::format("choose {} to {}{}", option.least, option.most, about);
  if (low) return fmt::format("choose {} or more{}", option.least, about);
  return fmt::format("choose another value{}", about);
}

template <class Number>
Number parse_number(Option const& option, std::string const& word, std::string const& spelled) {
  Number value{};
  auto const* first = word.data() + (word.size() > 1 && word[0] == '+' ? 1 : 0);
  auto const* last = word.data() + word.size();
  auto const [end, failure] = std::from_chars(first, last, value);
  VLR_USAGE(failure != std::errc::result_out_of_range, text(spelled, "=", word, " is out of range"),
            limits_text(option));
  bool usable = failure == std::errc() && end == last;
  if constexpr (std::is_floating_point_v<Number>) usable = usable && std::isfinite(value);
  VLR_USAGE(usable,
            text(spelled, "=", word, " is not a ",
                 std::is_floating_point_v<Number> ? "number" : "whole number"),
            limits_text(option));
  return value;
}

template <class Number>
void check_range(Option const& option, Number value, std::string const& word,
                 std::string const& spelled) {
  auto const wide = static_cast<double>(value);
  bool const inside = wide >= option.least && wide <= option.most;
  VLR_USAGE(inside || wide == option.initial, text(spelled, "=", word, " is out of range"),
            limits_text(option));
}

std::string parse_word(Option const& option, std::string word, std::string const& spelled) {
  if (auto const known = option.values.find(word); known != option.values.end())
    word = known->second;
  if (!option.choices.empty()) {
    bool const known =
        std::find(option.choices.begin(), option.choices.end(), word) != option.choices.end();
    VLR_USAGE(known, text(spelled, "=", word, " is not known"),
              text("choose ", listed(option.choices), " (", option.help, ")"));
  }
  if (!option.pattern.empty())
    VLR_USAGE(std::regex_match(word, std::regex(option.pattern)),
              text(spelled, "=", word, " is not understood"),
              text("give ", option.pattern_text, " (", option.help, ")"));
  return word;
}

/// Splits plain words at commas; a value with any other character (a regular expression) stays
/// whole.
std::vector<std::string> split_commas(std::vector<std::string> const& values) {
  std::vector<std::string> parts;
  for (auto const& value : values) {
    bool const plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ',' || c == ' ';
    });
    if (!plain) {
      parts.push_back(value);
      continue;
    }
    std::string part;
    for (char c : value + ",") {
      if (c != ',' && c != ' ') {
        part += c;
      } else if (!part.empty()) {
        parts.push_back(std::exchange(part, {}));
      }
    }
  }
  return parts;
}

}  // namespace

std::string boolean_word(std::string const& word) {
  auto const small = lower(word);
  if (small == "true" || small == "on" || small == "1" || small == "yes") return "true";
  if (small == "false" || small == "off" || small == "0" || small == "no") return "false";
  return "";
}

void assign(Option const& option, std::vector<std::string> const& values,
            std::string const& spelled) {
  auto const parts = option.commas ? split_commas(values) : values;
  VLR_USAGE(option.is_list() || option.is_bool() || parts.size() == 1,
            text(spelled, parts.empty() ? " needs a value" : " takes one value only"),
            text("write ", spelled, " VALUE (", option.help, ")"));
  std::visit(
      [&](auto* field) {
        using Field = std::remove_pointer_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, bool>) {
          auto const word = parts.empty() ? "true" : boolean_word(parts[0]);
          VLR_USAGE(!word.empty(), text(spelled, "=", parts[0], " is neither true nor false"),
                    text("choose true or false (", option.help, ")"));
          *field = word == "true";
        } else if constexpr (std::is_same_v<Field, std::string>) {
          *field = parse_word(option, parts[0], spelled);
        } else if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
          field->clear();
          for (auto const& part : parts) field->push_back(parse_word(option, part, spelled));
        } else if constexpr (std::is_same_v<Field, std::vector<std::int32_t>>) {
          field->clear();
          for (auto const& part : parts) {
            auto const value = parse_number<std::int32_t>(option, part, spelled);
            check_range(option, value, part, spelled);
            field->push_back(value);
          }
        } else {
          auto const value = parse_number<Field>(option, parts[0], spelled);
          check_range(option, value, parts[0], spelled);
          *field = value;
        }
      },
      option.slot);
}

std::string value_text(Option const& option) {
  return std::visit(
      [](auto const* field) {
        using Field = std::remove_cv_t<std::remove_pointer_t<decltype(field)>>;
        if constexpr (std::is_same_v<Field, bool>)
          return std::string(*field ? "true" : "false");
        else if constexpr (std::is_same_v<Field, std::vector<std::string>> ||
                           std::is_same_v<Field, std::vector<std::int32_t>>)
          return fmt::format("{}", fmt::join(*field, " "));
        else
          return fmt::format("{}", *field);
      },
      option.slot);
}

Option::Option(std::string option, Slot field, std::string description)
    : name(std::move(option)), slot(field), help(std::move(description)) {
  std::visit(
      [&](auto const* value) {
        if constexpr (std::is_arithmetic_v<std::remove_pointer_t<decltype(value)>>)
          initial = static_cast<double>(*value);
      },
      slot);
}

Option Option::between(double lowest, double highest) const {
  auto row = at_least(lowest);
  row.most = highest;
  return row;
}

Option Option::at_least(double lowest) const {
  auto row = *this;
  row.least = lowest;
  return row;
}

Option Option::choose(std::vector<std::string> names) const {
  auto row = *this;
  row.choices = std::move(names);
  return row;
}

Option Option::also(std::vector<Alias> names) const {
  auto row = *this;
  row.aliases.insert(row.aliases.end(), names.begin(), names.end());
  return row;
}

Option Option::reading(ValueNames names) const {
  auto row = *this;
  row.values = std::move(names);
  return row;
}

Option Option::matching(std::string expression, std::string explained) const {
  auto row = *this;
  row.pattern = std::move(expression);
  row.pattern_text = std::move(explained);
  return row;
}

Option Option::from_environment(std::string variable, std::int64_t divided_by) const {
  auto row = *this;
  row.environment.emplace_back(std::move(variable), divided_by);
  return row;
}

Option Option::defaulting(std::string shown) const {
  auto row = *this;
  row.shown_default = std::move(shown);
  return row;
}

Option Option::needed() const {
  auto row = *this;
  row.required = true;
  return row;
}

Option Option::separated() const {
  auto row = *this;
  row.commas = true;
  return row;
}

Option Option::at_positions() const {
  auto row = *this;
  row.positional = true;
  return row;
}

}  // namespace vlrerank
