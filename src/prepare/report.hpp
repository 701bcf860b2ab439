// prepare/report.hpp -- what became of the rows: counts, and one JSON line for each row that was
// rejected, cut or warned about.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/encode.hpp"
#include "data/rows.hpp"

namespace vlrerank {

/// A row that was left out.
struct BadRow {
  std::string file;
  std::int64_t line = 0;
  std::string reason;
  std::string text() const;  ///< "file:line: reason"
};

struct PrepareReport {
  std::int64_t rows = 0;      ///< in the set
  std::int64_t pairs = 0;     ///< in the set
  std::int64_t tokens = 0;    ///< of all pairs
  std::int64_t media = 0;     ///< uses of pictures and videos
  std::int64_t bad_rows = 0;  ///< left out
  std::int64_t cut_rows = 0;  ///< with at least one cut pair
  std::int64_t cut_pairs = 0;
  std::int64_t cut_tokens = 0;
  std::int64_t duplicates = 0;  ///< documents dropped as copies
  std::int64_t conflicts = 0;   ///< documents listed as positive and as negative
  std::int64_t warned_rows = 0;
  std::map<std::string, std::int64_t> forms;  ///< rows of each form
  std::vector<BadRow> first_bad;              ///< at most most_listed, in the order of the input

  static constexpr std::size_t most_listed = 20;
};

/// Counts a row that went into the set; returns its JSON line, "" when there is nothing to say.
std::string add_row(PrepareReport& report, ParsedRow const& parsed, EncodedRow const& row);
/// Counts a row that was left out; returns its JSON line.
std::string add_bad_row(PrepareReport& report, BadRow bad);
/// Adds the counts of a later part of the input.
void merge(PrepareReport& report, PrepareReport const& later);

std::string to_json(PrepareReport const& report);
/// Throws std::exception when it is not a report.
PrepareReport report_from_json(std::string const& json);

}  // namespace vlrerank
