// config/option.hpp -- one row of an option table, and how text becomes its value.
// Everything that is known about an option stands in its row: parsing, limits, help, the run record
// and docs/options.md are loops over rows.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace vlrerank {

/// The field that an option fills.
using Slot = std::variant<bool*, std::int32_t*, std::int64_t*, std::uint64_t*, double*,
                          std::string*, std::vector<std::string>*, std::vector<std::int32_t>*>;

/// Values with another spelling here; an empty right side means: nothing to do.
using ValueNames = std::map<std::string, std::string>;

/// Another name of an option, mostly ms-swift's.
struct Alias {
  Alias(char const* alias) : name(alias) {}  // NOLINT: a plain name is an alias
  Alias(char const* alias, ValueNames names, std::string explained = "", std::string otherwise = "")
      : name(alias),
        values(std::move(names)),
        notice(std::move(explained)),
        remedy(std::move(otherwise)) {}
  /// A value in pixels: divided by the 1,024 pixels that one image token shows.
  static Alias pixels(char const* alias) {
    Alias row(alias);
    row.divisor = 1024;
    return row;
  }

  std::string name;
  ValueNames values;
  std::string notice;  ///< added to the line that tells of the translation
  std::string remedy;  ///< when not empty, values outside `values` are refused with it
  std::int64_t divisor = 1;
};

/// A row. The setters return a changed copy, so that a row reads as one expression.
struct Option {
  /// `field` holds its default; the default is always in range, even where it stands for
  /// "automatic".
  Option(std::string option, Slot field, std::string description);

  Option between(double lowest, double highest) const;
  Option at_least(double lowest) const;
  Option choose(std::vector<std::string> names) const;
  Option also(std::vector<Alias> names) const;
  /// Other spellings of values, under every name of the option.
  Option reading(ValueNames names) const;
  /// A regular expression that the value must match, and how to say so.
  Option matching(std::string expression, std::string explained) const;
  /// Variable of the environment that sets it when neither the command line nor a file does.
  Option from_environment(std::string variable, std::int64_t divided_by = 1) const;
  /// What help shows as default when the field's own default stands for something computed.
  Option defaulting(std::string shown) const;
  Option needed() const;
  /// A list whose values may also be separated by commas.
  Option separated() const;
  /// Takes the arguments that follow no option.
  Option at_positions() const;

  std::string name;
  Slot slot;
  std::string help;
  std::string group;
  double initial = std::numeric_limits<double>::quiet_NaN();  ///< the default, of a single number
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  std::vector<std::string> choices;
  std::vector<Alias> aliases;
  ValueNames values;
  std::string pattern;
  std::string pattern_text;
  std::vector<std::pair<std::string, std::int64_t>> environment;
  std::string shown_default;
  bool required = false;
  bool commas = false;
  bool positional = false;

  bool is_bool() const { return std::holds_alternative<bool*>(slot); }
  bool is_list() const {
    return std::holds_alternative<std::vector<std::string>*>(slot) ||
           std::holds_alternative<std::vector<std::int32_t>*>(slot);
  }
};

/// "true", "on", "1", "yes" -> "true", their opposites -> "false", anything else -> "".
std::string boolean_word(std::string const& word);

/// Replaces the option's value (a list: all of it). `values` are as typed; `spelled` is the name to
/// use in messages, with its dashes. Throws Error (exit 2) naming the option, the value and the
/// limits.
void assign(Option const& option, std::vector<std::string> const& values,
            std::string const& spelled);

/// The present value as it would be typed; a list joined by spaces.
std::string value_text(Option const& option);

}  // namespace vlrerank
