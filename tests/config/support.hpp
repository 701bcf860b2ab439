// tests/config/support.hpp -- command lines as one string, and the error that they end in.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "core/error.hpp"

namespace vlrerank {

/// Splits at blanks; single quotes keep them.
inline std::vector<std::string> split(std::string const& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (char c : line + " ") {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  return words;
}

using Variables = std::map<std::string, std::string>;

inline Environment environment_of(Variables const& variables) {
  return [variables](char const* name) -> char const* {
    auto const found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

inline Parsed parse(std::string const& command, std::string const& line,
                    Variables const& variables = {}) {
  return parse_options(command, split(line), environment_of(variables));
}

/// `train --model M --dataset D` and what else is said.
inline Parsed train(std::string const& line, Variables const& variables = {}) {
  return parse("train", "--model M --dataset D " + line, variables);
}

/// The whole message of the usage error that a call ends in; "" and a failure when there is none.
template <class Call>
std::string usage_error(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline std::string train_error(std::string const& line, Variables const& variables = {}) {
  return usage_error([&] { train(line, variables); });
}

inline bool contains(std::string const& where, std::string const& what) {
  return where.find(what) != std::string::npos;
}

inline std::string notices(Parsed const& parsed) {
  std::string all;
  for (auto const& line : parsed.notices) all += line + "\n";
  return all;
}

}  // namespace vlrerank
