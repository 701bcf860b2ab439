// params/targets.cpp -- PEFT's rules for target_modules. The only file here that includes pcre2.h.
#include "params/targets.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/error.hpp"
#include "core/handle.hpp"

namespace vlrerank {
namespace {

void free_code(pcre2_code* code) noexcept {
  pcre2_code_free(code);
}
void free_match(pcre2_match_data* data) noexcept {
  pcre2_match_data_free(data);
}
using Code = Handle<pcre2_code*, free_code>;
using Match = Handle<pcre2_match_data*, free_match>;

/// Whole-string match, as Python's re.fullmatch.
class Expression {
 public:
  explicit Expression(std::string const& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &offset, nullptr);
    if (code == nullptr) {
      PCRE2_UCHAR reason[256] = {};
      pcre2_get_error_message(error, reason, sizeof(reason));
      throw Error(Exit::usage,
                  text("--target-modules ", pattern, " is no regular expression: ",
                       reinterpret_cast<char const*>(reason), " at character ", offset),
                  "mend the expression, or give module names such as q_proj v_proj", VLR_WHERE);
    }
    code_ = Code(code);
    match_ = Match(pcre2_match_data_create_from_pattern(code, nullptr));
  }
  bool matches(std::string const& name) const {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                       match_.get(), nullptr) > 0;
  }

 private:
  Code code_;
  Match match_;
};

bool ends_with_module(std::string_view name, std::string_view suffix) {
  return name == suffix || (name.size() > suffix.size() && name.ends_with(suffix) &&
                            name[name.size() - suffix.size() - 1] == '.');
}

bool is_plain_name(std::string const& value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

std::string all_linear(Frozen llm, Frozen vision, Frozen aligner) {
  std::vector<std::string> parts;
  if (llm == Frozen::no)
    parts.emplace_back(
        R"(model\.language_model(?=\.).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj))");
  if (vision == Frozen::no)
    parts.emplace_back(R"(model\.visual\.blocks(?=\.).*\.(qkv|proj|linear_fc1|linear_fc2))");
  if (aligner == Frozen::no)
    parts.emplace_back(
        R"(model\.visual\.(merger|deepstack_merger_list)(?=\.).*(linear_fc1|linear_fc2))");
  VLR_USAGE(!parts.empty(), "--target-modules all-linear, but every part of the model is frozen",
            "give --freeze-llm false, --freeze-vit false or --freeze-aligner false");
  std::string joined;
  for (auto const& part : parts) joined += (joined.empty() ? "" : "|") + part;
  return "^(" + joined + ")$";
}

}  // namespace

Targets parse_targets(std::vector<std::string> const& option, Frozen llm, Frozen vision,
                      Frozen aligner) {
  VLR_USAGE(!option.empty(), "--target-modules is empty", "give all-linear, or module names");
  if (option.size() == 1 && option[0] == "all-linear")
    return {{}, all_linear(llm, vision, aligner)};
  if (option.size() == 1 && !is_plain_name(option[0])) return {{}, option[0]};
  return {option, {}};
}

std::vector<std::string> matching_modules(Targets const& targets,
                                          std::vector<std::string> const& modules) {
  std::vector<std::string> found;
  if (!targets.regex.empty()) {
    Expression const expression(targets.regex);
    for (auto const& name : modules)
      if (expression.matches(name)) found.push_back(name);
    VLR_USAGE(!found.empty(), text("no linear module matches --target-modules ", targets.regex),
              "`vlrerank inspect MODEL` lists the modules");
    return found;
  }
  for (auto const& suffix : targets.suffixes) {
    bool const used = std::any_of(modules.begin(), modules.end(),
                                  [&](auto const& name) { return ends_with_module(name, suffix); });
    VLR_USAGE(
        used, text("no linear module is named ", suffix, " (--target-modules)"),
        "`vlrerank inspect MODEL` lists the modules; the text decoder has q_proj k_proj v_proj "
        "o_proj gate_proj up_proj down_proj");
  }
  for (auto const& name : modules)
    if (std::any_of(targets.suffixes.begin(), targets.suffixes.end(),
                    [&](auto const& suffix) { return ends_with_module(name, suffix); }))
      found.push_back(name);
  return found;
}

}  // namespace vlrerank
