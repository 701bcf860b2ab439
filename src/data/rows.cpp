// data/rows.cpp -- a line of JSON becomes a sample: parsed strictly, read by its form, cleaned of
// repeated documents.
#include "data/rows.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/row_forms.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

json parse_json(std::string_view line) {
  try {
    return json::parse(line);
  } catch (json::parse_error const& error) {
    std::string_view const words = error.what();
    if (words.find("UTF-8") != std::string_view::npos)
      row_parts::reject(text("bytes that are not UTF-8 near byte ", error.byte));
    auto const begin = words.find(" - ");
    auto const end = words.find("; ", begin == std::string_view::npos ? 0 : begin);
    auto const detail = begin == std::string_view::npos || end == std::string_view::npos
                            ? std::string_view("syntax error")
                            : words.substr(begin + 3, end - begin - 3);
    row_parts::reject(text("not valid JSON at byte ", error.byte, ": ", detail));
  }
}

/// Removes copies of a document, keeping the first with the highest label, and tells of each.
void drop_duplicates(ParsedRow& parsed, Duplicates treatment) {
  auto& documents = parsed.sample.documents;
  std::vector<Document> kept;
  kept.reserve(documents.size());
  for (auto& document : documents) {
    auto const same = std::find_if(kept.begin(), kept.end(), [&document](Document const& other) {
      return other.content == document.content && other.instruction == document.instruction;
    });
    if (same == kept.end()) {
      kept.push_back(std::move(document));
      continue;
    }
    bool const conflict = same->label != document.label;
    ++(conflict ? parsed.conflicts : parsed.duplicates);
    auto const* const what = conflict ? "a document is listed as positive and as negative"
                                      : "a document is listed twice";
    if (treatment == Duplicates::keep) {
      parsed.warnings.push_back(text(what, ": both are kept"));
      kept.push_back(std::move(document));
      continue;
    }
    same->label = std::max(same->label, document.label);
    parsed.warnings.push_back(
        text(what, conflict ? ": the negative copy is dropped" : ": one copy is dropped"));
  }
  documents = std::move(kept);
}

void warn_of_missing_classes(ParsedRow& parsed) {
  bool positive = false;
  bool negative = false;
  for (auto const& document : parsed.sample.documents) {
    positive |= document.label > 0;
    negative |= document.label <= 0;
  }
  if (!negative) parsed.warnings.push_back("the row has no negative document");
  if (!positive) parsed.warnings.push_back("the row has no positive document");
}

}  // namespace

ParsedRow parse_row(std::string_view line_text, std::string const& file, std::int64_t line,
                    RowOptions const& options) {
  auto const row = parse_json(line_text);
  if (!row.is_object())
    row_parts::reject(text("the line is ", row_parts::kind_of(row), ", not an object"));
  ParsedRow parsed;
  auto folder = options.image_root;
  if (folder.empty() && file != "-") folder = std::filesystem::path(file).parent_path().string();
  row_parts::read_row(row, {options, std::move(folder), parsed.warnings}, parsed.sample);
  parsed.sample.file = file;
  parsed.sample.line = line;
  for (auto const* key : {"id", "query_id", "qid"}) {
    auto const& id = row_parts::member(row, key);
    if (parsed.sample.id.empty() && id.is_string()) parsed.sample.id = id.get<std::string>();
    if (parsed.sample.id.empty() && id.is_number_integer()) parsed.sample.id = id.dump();
  }
  if (parsed.sample.documents.empty()) row_parts::reject("the row has no documents");
  drop_duplicates(parsed, options.duplicates);
  if (options.labels_required && parsed.sample.form != "pair") warn_of_missing_classes(parsed);
  return parsed;
}

}  // namespace vlrerank
