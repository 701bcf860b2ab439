// config/reader.cpp -- from names and values to checked settings.
#include "config/reader.hpp"

#include <algorithm>

#include "config/arguments.hpp"
#include "config/config_file.hpp"
#include "config/nearest.hpp"
#include "core/error.hpp"

namespace vlrerank {
namespace {

std::string joined(std::vector<std::string> const& words) {
  std::string out;
  for (auto const& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<std::string> names_of(std::vector<Option> const& table) {
  std::vector<std::string> names;
  for (auto const& option : table) {
    names.push_back(option.name);
    for (auto const& alias : option.aliases) names.push_back(alias.name);
  }
  return names;
}

}  // namespace

Reader::Known Reader::find(std::string const& name) const {
  for (auto const& option : table_) {
    if (option.name == name) return {&option, nullptr};
    for (auto const& alias : option.aliases)
      if (alias.name == name) return {&option, &alias};
  }
  return {};
}

void Reader::read_command_line(std::vector<std::string> const& arguments) {
  auto const all = cut_arguments(arguments, names_of(table_));
  for (auto const& token : all)
    if (token.name == "help") parsed_.help = true;
  if (parsed_.help) return;
  for (auto const& token : all) {
    if (token.name != "config") continue;
    VLR_USAGE(token.values.size() == 1, "--config takes the path of one file",
              "write --config runs/a/config.json");
    read_file(token.values[0]);
  }
  std::vector<std::string> positional;
  std::string before = command_.name;
  for (auto const& token : all) {
    if (token.name == "config") continue;
    auto const left =
        token.name.empty() ? token.values : apply(token.name, token.values, Source::command_line);
    positional.insert(positional.end(), left.begin(), left.end());
    if (!token.name.empty()) before = "--" + token.name;
    auto const takes_them = [](Option const& option) { return option.positional; };
    VLR_USAGE(left.empty() || std::any_of(table_.begin(), table_.end(), takes_them),
              text("unexpected argument `", left[0], "` after ", before),
              "options begin with two dashes, as --model DIR; quote values with blanks");
  }
  for (auto const& option : table_)
    if (option.positional && !positional.empty())
      set(option, positional, option.name, Source::command_line);
}

void Reader::read_file(std::string const& path) {
  auto const is_list = [this](std::string const& name) {
    auto const known = find(with_dashes(name));
    return known.option != nullptr && known.option->is_list();
  };
  std::vector<std::string> elsewhere;
  for (auto const& command : commands()) {
    Settings scratch;
    for (auto const& name : names_of(command.table(scratch))) elsewhere.push_back(name);
  }
  for (auto const& [written, values] : read_config_file(path, is_list)) {
    auto const name = with_dashes(written);
    bool const theirs = std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end();
    if (find(name).option == nullptr && theirs) {
      unused_.push_back(name);
      continue;
    }
    auto const left = apply(name, values, Source::file);
    VLR_USAGE(left.empty(), text(path, ": ", written, " takes one value, not ", joined(values)),
              "give one value");
  }
  if (!unused_.empty()) notice(text(path, ": not used by ", command_.name, ": ", joined(unused_)));
}

std::vector<std::string> Reader::apply(std::string const& name, std::vector<std::string> values,
                                       Source source) {
  auto const known = find(name);
  auto const* foreign = known.option == nullptr ? find_foreign(name) : nullptr;
  if (known.option == nullptr && foreign == nullptr) refuse_unknown(name);
  if (foreign != nullptr) {
    apply_foreign(*foreign, name, values, source);
    return {};
  }
  if (known.option->is_list()) {
    VLR_USAGE(source == Source::file || !values.empty(), text("--", name, " needs a value"),
              text("write --", name, " VALUE ... (", known.option->help, ")"));
    apply_own(known, name, std::move(values), source);
    return {};
  }
  bool const positional_allowed = std::any_of(table_.begin(), table_.end(),
                                              [](auto const& option) { return option.positional; });
  bool const bare = known.option->is_bool() && positional_allowed && !values.empty() &&
                    boolean_word(values[0]).empty();
  bool const taken = !values.empty() && !bare;
  auto const first_left = values.begin() + (taken ? 1 : 0);
  std::vector<std::string> const left(first_left, values.end());
  values.erase(first_left, values.end());
  apply_own(known, name, std::move(values), source);
  return left;
}

void Reader::apply_own(Known known, std::string const& spelled, std::vector<std::string> values,
                       Source source) {
  if (known.alias != nullptr && !known.option->is_list()) {
    auto const& alias = *known.alias;
    bool const flag = alias.values.count("true") != 0;
    if (values.empty() && flag) values = {"true"};
    auto const typed = joined(values);
    auto const word = flag && !boolean_word(typed).empty() ? boolean_word(typed) : typed;
    auto const found = alias.values.find(word);
    VLR_USAGE(found != alias.values.end() || alias.remedy.empty(),
              text("--", spelled, "=", typed, " cannot be honoured here"), alias.remedy);
    if (found != alias.values.end()) {
      if (found->second.empty()) {
        notice(text("--", spelled, " ", typed, " is ignored: it changes nothing here"));
        return;
      }
      values = {found->second};
      notice(text("--", spelled, " ", typed, " is read as --", known.option->name, " ", values[0],
                  alias.notice.empty() ? "" : ": ", alias.notice));
    }
    if (alias.divisor != 1) {
      std::int64_t pixels = 0;
      assign(Option(spelled, &pixels, "pixels of a picture").at_least(alias.divisor), values,
             text("--", spelled));
      values = {std::to_string(pixels / alias.divisor)};
      notice(text("--", spelled, " ", typed, " is read as --", known.option->name, " ", values[0]));
    }
  }
  set(*known.option, std::move(values), spelled, source);
}

void Reader::set(Option const& option, std::vector<std::string> values, std::string const& spelled,
                 Source source) {
  auto const dashed = source == Source::environment ? spelled : "--" + spelled;
  auto const before = given_.find(option.name);
  bool const again = before != given_.end() && before->second.source == source;
  if (option.is_list()) {
    auto& held = lists_[option.name];
    if (!again) held.clear();
    held.insert(held.end(), values.begin(), values.end());
    assign(option, held, dashed);
  } else {
    auto const old_value = value_text(option);
    assign(option, values, dashed);
    auto const new_value = value_text(option);
    if (again && new_value != old_value) {
      VLR_USAGE(before->second.spelled == spelled,
                text("--", before->second.spelled, " and --", spelled, " disagree: ", old_value,
                     " and ", new_value),
                text("keep one of them: both mean --", option.name));
      notice(
          text("--", spelled, " is given more than once: the last value, ", new_value, ", counts"));
    }
    if (!values.empty() && option.values.count(values[0]) != 0)
      notice(text(dashed, " ", values[0], " is read as --", option.name, " ", new_value));
  }
  given_.insert_or_assign(option.name, Given{source, spelled});
}

void Reader::apply_foreign(ForeignName const& row, std::string const& name,
                           std::vector<std::string> const& values, Source source) {
  auto const typed = joined(values);
  auto const spelled = text("--", name, values.empty() ? "" : " ", typed);
  if (!row.keys.empty()) {
    for (auto const& [key, inner] : parse_json_entries(typed, "--" + name)) {
      auto const known = row.keys.find(key);
      VLR_USAGE(known != row.keys.end(), text("--", name, ": ", key, " cannot be honoured here"),
                row.remedy);
      VLR_USAGE(find(known->second).option != nullptr,
                text("--", name, " is not an option of ", command_.name),
                text("run `vlrerank ", command_.name, " --help` for its options"));
      notice(text("--", name, " ", key, " is read as --", known->second, " ", joined(inner)));
      apply(known->second, inner, source);
    }
    return;
  }
  auto const word = values.empty() ? std::string("true") : typed;
  VLR_USAGE(is_harmless(row, word), text(spelled, " cannot be honoured here"), row.remedy);
  notice(text(spelled, " is ignored: ", row.reason));
}

void Reader::refuse_unknown(std::string const& name) const {
  auto const help = text("run `vlrerank ", command_.name, " --help` for its options");
  std::string owners;
  for (auto const& command : commands()) {
    Settings scratch;
    auto const names = names_of(command.table(scratch));
    if (std::find(names.begin(), names.end(), name) != names.end())
      owners += text(owners.empty() ? "" : ", ", command.name);
  }
  VLR_USAGE(owners.empty(),
            text("--", name, " is an option of ", owners, ", not of ", command_.name),
            text("leave it out, or ", help));
  auto const near = nearest(name, names_of(table_));
  throw Error(Exit::usage, text("unknown option --", name),
              near.empty() ? help : text("did you mean --", near, "? ", help), VLR_WHERE);
}

void Reader::read_environment(Environment const& environment) {
  if (!environment) return;
  for (auto const& [variable, word] : {std::pair{"GENERATIVE_RERANKER_POSITIVE_TOKEN", "yes"},
                                       std::pair{"GENERATIVE_RERANKER_NEGATIVE_TOKEN", "no"}}) {
    auto const* value = environment(variable);
    VLR_USAGE(value == nullptr || std::string(value) == word, text(variable, "=", value),
              text("unset it: the reranker answers with the word \"", word, "\""));
  }
  for (auto const& option : table_) {
    for (auto const& [variable, divisor] : option.environment) {
      auto const* value = environment(variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      if (given_.count(option.name) != 0) {
        notice(text(variable, "=", value, " of the environment gives way to --", option.name, " ",
                    value_text(option)));
        continue;
      }
      std::string word = value;
      if (divisor != 1) {
        std::int64_t pixels = 0;
        assign(
            Option(variable, &pixels, "pixels of a picture").at_least(static_cast<double>(divisor)),
            {word}, variable);
        word = std::to_string(pixels / divisor);
      }
      set(option, {word}, variable, Source::environment);
      notice(text(variable, "=", value, " of the environment is read as --", option.name, " ",
                  value_text(option)));
    }
  }
}

void Reader::check() {
  auto& schedule = parsed_.settings.schedule;
  if (schedule.warmup_ratio > 0 && schedule.warmup_steps > 0) {
    auto const ratio = given_.find("warmup-ratio");
    auto const steps = given_.find("warmup-steps");
    bool const both = ratio != given_.end() && steps != given_.end();
    VLR_USAGE(both && ratio->second.source != steps->second.source,
              text("--warmup-ratio ", schedule.warmup_ratio, " and --warmup-steps ",
                   schedule.warmup_steps, " are both set"),
              "keep one of them");
    if (ratio->second.source < steps->second.source)
      schedule.warmup_ratio = 0;
    else
      schedule.warmup_steps = 0;
  }
  std::string missing;
  for (auto const& option : table_)
    if (option.required && value_text(option).empty())
      missing += text(missing.empty() ? "" : " and ", option.positional ? "" : "--", option.name);
  VLR_USAGE(missing.empty(), text("`vlrerank ", command_.name, "` needs ", missing),
            text("for example: ", command_.example));
}

}  // namespace vlrerank
