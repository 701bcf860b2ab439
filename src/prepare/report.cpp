// prepare/report.cpp -- counts as JSON; the list of counters stands once.
#include "prepare/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace vlrerank {
namespace {

using Json = nlohmann::ordered_json;

struct Counter {
  char const* name;
  std::int64_t PrepareReport::*field;
};
constexpr Counter counters[] = {
    {"rows", &PrepareReport::rows},
    {"pairs", &PrepareReport::pairs},
    {"tokens", &PrepareReport::tokens},
    {"media", &PrepareReport::media},
    {"bad_rows", &PrepareReport::bad_rows},
    {"cut_rows", &PrepareReport::cut_rows},
    {"cut_pairs", &PrepareReport::cut_pairs},
    {"cut_tokens", &PrepareReport::cut_tokens},
    {"duplicates", &PrepareReport::duplicates},
    {"conflicts", &PrepareReport::conflicts},
    {"warned_rows", &PrepareReport::warned_rows},
};

std::string dump(Json const& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string BadRow::text() const {
  return vlrerank::text(file, ":", line, ": ", reason);
}

std::string add_row(PrepareReport& report, ParsedRow const& parsed, EncodedRow const& row) {
  ++report.rows;
  ++report.forms[parsed.sample.form];
  report.pairs += static_cast<std::int64_t>(row.pairs.size());
  report.media += static_cast<std::int64_t>(row.media.size());
  report.duplicates += parsed.duplicates;
  report.conflicts += parsed.conflicts;
  std::int64_t cut_pairs = 0, cut_tokens = 0;
  for (auto const& pair : row.pairs) {
    report.tokens += static_cast<std::int64_t>(pair.ids.size());
    cut_pairs += pair.cut_tokens > 0;
    cut_tokens += pair.cut_tokens;
  }
  report.cut_rows += cut_pairs > 0;
  report.cut_pairs += cut_pairs;
  report.cut_tokens += cut_tokens;
  report.warned_rows += !parsed.warnings.empty();
  if (cut_pairs == 0 && parsed.warnings.empty()) return "";
  Json json = {{"file", parsed.sample.file}, {"line", parsed.sample.line}, {"status", "ok"}};
  if (!parsed.warnings.empty()) json["warnings"] = parsed.warnings;
  if (cut_pairs > 0) {
    json["cut_pairs"] = cut_pairs;
    json["cut_tokens"] = cut_tokens;
  }
  return dump(json) + "\n";
}

std::string add_bad_row(PrepareReport& report, BadRow bad) {
  ++report.bad_rows;
  Json const json = {
      {"file", bad.file}, {"line", bad.line}, {"status", "rejected"}, {"reason", bad.reason}};
  if (report.first_bad.size() < PrepareReport::most_listed)
    report.first_bad.push_back(std::move(bad));
  return dump(json) + "\n";
}

void merge(PrepareReport& report, PrepareReport const& later) {
  for (auto const& counter : counters) report.*counter.field += later.*counter.field;
  for (auto const& [form, rows] : later.forms) report.forms[form] += rows;
  for (auto const& bad : later.first_bad)
    if (report.first_bad.size() < PrepareReport::most_listed) report.first_bad.push_back(bad);
}

std::string to_json(PrepareReport const& report) {
  Json json;
  for (auto const& counter : counters) json[counter.name] = report.*counter.field;
  json["forms"] = report.forms;
  json["first_bad"] = Json::array();
  for (auto const& bad : report.first_bad)
    json["first_bad"].push_back({{"file", bad.file}, {"line", bad.line}, {"reason", bad.reason}});
  return dump(json);
}

PrepareReport report_from_json(std::string const& text) {
  auto const json = Json::parse(text);
  PrepareReport report;
  for (auto const& counter : counters)
    report.*counter.field = json.at(counter.name).get<std::int64_t>();
  report.forms = json.at("forms").get<std::map<std::string, std::int64_t>>();
  for (auto const& bad : json.at("first_bad"))
    report.first_bad.push_back({bad.at("file").get<std::string>(),
                                bad.at("line").get<std::int64_t>(),
                                bad.at("reason").get<std::string>()});
  return report;
}

}  // namespace vlrerank
