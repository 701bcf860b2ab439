// app/check_summary.hpp -- what `vlrerank check` counts over all rows, and how it is shown.
// Internal to the command.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/settings.hpp"
#include "model/config.hpp"
#include "prepare/prepare.hpp"

namespace vlrerank {

/// How often each value was seen.
class Histogram {
 public:
  void add(std::int64_t value) { ++counts_[value]; }
  bool empty() const { return counts_.empty(); }
  /// The smallest value that `share` of all values do not exceed.
  std::int64_t quantile(double share) const;
  /// Quartiles and a bar for each of some ranges of equal width.
  std::string show(std::string const& title) const;

 private:
  std::int64_t total() const;
  std::map<std::int64_t, std::int64_t> counts_;
};

struct CheckSummary {
  PrepareReport report;
  std::int64_t positives = 0;       ///< documents labelled 0.5 or more
  std::int64_t only_positives = 0;  ///< rows without a negative
  std::int64_t only_negatives = 0;
  std::int64_t repeated_queries = 0;  ///< rows whose query stood in an earlier row
  Histogram tokens;                   ///< of a pair
  Histogram documents;                ///< of a row
  Histogram image_tokens;             ///< of a picture or video
  double step_documents = 0;          ///< sum over rows of the documents that a step takes of each
  double step_tokens = 0;             ///< the same of the tokens computed on, prefixes once
  std::int64_t longest_row = 0;       ///< tokens computed on for one row
  std::unordered_map<std::uint64_t, std::int32_t> queries;  ///< hashes of those seen
  std::string sample;  ///< the first pair, decoded, with its ids

  void add(ParsedRow const& parsed, EncodedRow const& row, Settings const& settings);
};

/// Counts, histograms and what truncation cuts.
std::string show_counts(CheckSummary const& summary);
/// Rows, documents and tokens of an optimizer step, number of steps.
std::string show_steps(CheckSummary const& summary, Settings const& settings);
/// A rough forecast of memory and arithmetic for a model of this size.
std::string show_forecast(CheckSummary const& summary, Settings const& settings,
                          ModelConfig const& config);

}  // namespace vlrerank
