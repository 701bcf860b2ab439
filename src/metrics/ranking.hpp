// metrics/ranking.hpp -- how well scores order the documents of each query.
// Documents with equal scores have no order: every metric is its expected value over all orders of
// the tied documents, in closed form. A collapsed model, whose scores are all equal, gets what
// chance gives, not a win.
//
// A document is relevant when its label is above 0 (as trec_eval takes relevance levels); the label
// itself is the gain of NDCG, so graded labels count by their degree. Groups without a relevant or
// without an irrelevant document cannot be ranked right or wrong: they are left out and counted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vlrerank::ranking {

/// One query's documents, in any order.
struct RankedGroup {
  std::vector<double> scores;  ///< logits: above 0 means yes
  std::vector<double> labels;  ///< relevance in [0, 1]
};

/// Metrics of one group.
struct GroupMetrics {
  bool counted = false;           ///< has relevant and irrelevant documents; the rest is 0 if not
  double mrr = 0;                 ///< 1 / rank of the first relevant document
  double ndcg = 0;                ///< over the whole list
  double ap = 0;                  ///< average precision
  double auc = 0;                 ///< share of relevant-irrelevant pairs in the right order
  std::vector<double> ndcg_at;    ///< for each cut-off k
  std::vector<double> recall_at;  ///< share of the relevant documents among the first k
};

/// How scores are spread, over the documents of all groups.
struct ScoreStatistics {
  double positive_mean = 0;  ///< logits of relevant documents
  double negative_mean = 0;
  double spread = 0;       ///< standard deviation of all logits
  bool collapsed = false;  ///< at least two documents, and all probabilities within 0.001
};

/// Means over the counted groups; accuracy, AUC and score statistics over the documents of all.
struct Metrics {
  std::int64_t groups = 0;
  std::int64_t counted = 0;
  std::int64_t without_positive = 0;
  std::int64_t without_negative = 0;
  std::int64_t documents = 0;
  double mrr = 0;
  double ndcg = 0;
  double map = 0;
  double auc = 0;  ///< of all relevant-irrelevant pairs, across groups too; 0.5 if there is none
  double accuracy = 0;  ///< share of documents with (score > 0) == (label > 0.5)
  std::vector<std::int32_t> at;
  std::vector<double> ndcg_at;
  std::vector<double> recall_at;
  ScoreStatistics scores;
};

/// @param at  cut-offs k >= 1
/// Throws Error (exit 4) for a score that is not a number: it has no place in an order.
/// O(n log n + n |at|).
GroupMetrics group_metrics(RankedGroup const& group, std::vector<std::int32_t> const& at);

/// Local: gather the groups of all ranks first. Independent of the order of documents in a group
/// but for rounding.
Metrics evaluate(std::vector<RankedGroup> const& groups, std::vector<std::int32_t> const& at);

/// Names as --metric-for-best-model and the log spell them, with their values: mrr, ndcg, map, auc,
/// acc, ndcg@k, recall@k.
std::vector<std::pair<std::string, double>> named_values(Metrics const& metrics);

/// The value of a name above. Throws Error (exit 2) naming those that there are.
double value_of(Metrics const& metrics, std::string const& name);

/// True for all names but "loss".
bool greater_is_better(std::string const& name);

}  // namespace vlrerank::ranking
