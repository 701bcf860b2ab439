// metrics/ranking.cpp -- expected metrics over blocks of equal scores.
#include "metrics/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace vlrerank::ranking {
namespace {

constexpr double kCollapse = 1e-3;  // of a probability

bool relevant(double label) {
  return label > 0;
}

/// Documents with one score: they take the ranks [above + 1, above + size] in any order.
struct Block {
  std::int64_t above = 0;
  std::int64_t size = 0;
  std::int64_t relevant = 0;
  std::int64_t relevant_above = 0;
  double gain = 0;  // sum of labels
};

/// Blocks by falling score.
std::vector<Block> blocks_of(RankedGroup const& group) {
  auto const n = group.scores.size();
  VLR_REQUIRE(n == group.labels.size(),
              text("a group has ", n, " scores and ", group.labels.size(), " labels"),
              "this is a bug in the caller: pass one label a score");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < n; ++i)
    VLR_CHECK_(Exit::diverged, !std::isnan(group.scores[i]),
               text("the score of document ", i + 1, " is not a number"),
               "lower --learning-rate, or evaluate an earlier checkpoint");
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return group.scores[a] > group.scores[b]; });
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == 0 || group.scores[order[i]] != group.scores[order[i - 1]]) {
      Block next;
      if (i > 0) {
        auto const& last = blocks.back();
        next.above = last.above + last.size;
        next.relevant_above = last.relevant_above + last.relevant;
      }
      blocks.push_back(next);
    }
    auto const label = group.labels[order[i]];
    ++blocks.back().size;
    blocks.back().relevant += relevant(label) ? 1 : 0;
    blocks.back().gain += label;
  }
  return blocks;
}

/// Sum over j of P(first relevant document of the block is its j-th) / rank.
/// P(1) = r/n, and P(j+1) / P(j) = (n - j - r + 1) / (n - j): draws without replacement.
double expected_reciprocal_rank(std::vector<Block> const& blocks) {
  for (auto const& block : blocks) {
    if (block.relevant == 0) continue;
    auto const n = static_cast<double>(block.size);
    auto const r = static_cast<double>(block.relevant);
    double probability = r / n;
    double expected = 0;
    for (std::int64_t j = 1; j <= block.size - block.relevant + 1; ++j) {
      expected += probability / static_cast<double>(block.above + j);
      probability *= (n - static_cast<double>(j) - r + 1) / (n - static_cast<double>(j));
    }
    return expected;
  }
  return 0;
}

/// A relevant document at the block's j-th place has before it those above the block, and of the
/// j - 1 before it in the block the share (r - 1) / (n - 1); the place is relevant with r / n.
double expected_average_precision(std::vector<Block> const& blocks, std::int64_t all_relevant) {
  double sum = 0;
  for (auto const& block : blocks) {
    if (block.relevant == 0) continue;
    auto const n = static_cast<double>(block.size);
    auto const r = static_cast<double>(block.relevant);
    auto const share = block.size > 1 ? (r - 1) / (n - 1) : 0.0;
    for (std::int64_t j = 1; j <= block.size; ++j) {
      auto const hits =
          static_cast<double>(block.relevant_above) + 1 + static_cast<double>(j - 1) * share;
      sum += r / n * hits / static_cast<double>(block.above + j);
    }
  }
  return sum / static_cast<double>(all_relevant);
}

/// Every place of a block has the block's mean gain.
double expected_dcg(std::vector<Block> const& blocks, std::int64_t cutoff) {
  double sum = 0;
  for (auto const& block : blocks) {
    double discounts = 0;
    auto const end = std::min(block.above + block.size, cutoff);
    for (auto rank = block.above + 1; rank <= end; ++rank)
      discounts += 1 / std::log2(static_cast<double>(rank) + 1);
    sum += block.gain / static_cast<double>(block.size) * discounts;
  }
  return sum;
}

double ideal_dcg(std::vector<double> const& falling_labels, std::int64_t cutoff) {
  double sum = 0;
  auto const end = std::min(static_cast<std::int64_t>(falling_labels.size()), cutoff);
  for (std::int64_t i = 0; i < end; ++i)
    sum += falling_labels[static_cast<std::size_t>(i)] / std::log2(static_cast<double>(i) + 2);
  return sum;
}

double expected_recall(std::vector<Block> const& blocks, std::int64_t cutoff,
                       std::int64_t all_relevant) {
  double found = 0;
  for (auto const& block : blocks) {
    auto const places = std::clamp<std::int64_t>(cutoff - block.above, 0, block.size);
    found += static_cast<double>(block.relevant) * static_cast<double>(places) /
             static_cast<double>(block.size);
  }
  return found / static_cast<double>(all_relevant);
}

/// Share of relevant-irrelevant pairs in the right order, ties as half; 0.5 without pairs.
double area_under_curve(std::vector<Block> const& blocks) {
  double right = 0;
  std::int64_t positives = 0;
  std::int64_t documents = 0;
  for (auto const& block : blocks) {
    auto const negatives = static_cast<double>(block.size - block.relevant);
    right += negatives *
             (static_cast<double>(block.relevant_above) + static_cast<double>(block.relevant) / 2);
    positives += block.relevant;
    documents += block.size;
  }
  auto const pairs = static_cast<double>(positives) * static_cast<double>(documents - positives);
  return pairs > 0 ? right / pairs : 0.5;
}

double probability(double logit) {
  return 1 / (1 + std::exp(-logit));
}

ScoreStatistics statistics_of(RankedGroup const& all) {
  ScoreStatistics out;
  auto const n = all.scores.size();
  if (n == 0) return out;
  double positives = 0;
  double sum = 0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (std::size_t i = 0; i < n; ++i) {
    bool const positive = relevant(all.labels[i]);
    positives += positive ? 1 : 0;
    (positive ? out.positive_mean : out.negative_mean) += all.scores[i];
    sum += all.scores[i];
    lowest = std::min(lowest, all.scores[i]);
    highest = std::max(highest, all.scores[i]);
  }
  auto const count = static_cast<double>(n);
  out.positive_mean /= std::max(1.0, positives);
  out.negative_mean /= std::max(1.0, count - positives);
  double squares = 0;
  for (auto const score : all.scores) squares += (score - sum / count) * (score - sum / count);
  out.spread = std::sqrt(squares / count);
  out.collapsed = n > 1 && probability(highest) - probability(lowest) < kCollapse;
  return out;
}

}  // namespace

GroupMetrics group_metrics(RankedGroup const& group, std::vector<std::int32_t> const& at) {
  auto const blocks = blocks_of(group);
  GroupMetrics out;
  out.ndcg_at.resize(at.size());
  out.recall_at.resize(at.size());
  std::int64_t const positives = std::count_if(group.labels.begin(), group.labels.end(), relevant);
  auto const documents = static_cast<std::int64_t>(group.labels.size());
  out.counted = positives > 0 && positives < documents;
  if (!out.counted) return out;

  auto falling = group.labels;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  out.mrr = expected_reciprocal_rank(blocks);
  out.ap = expected_average_precision(blocks, positives);
  out.ndcg = expected_dcg(blocks, documents) / ideal_dcg(falling, documents);
  out.auc = area_under_curve(blocks);
  for (std::size_t i = 0; i < at.size(); ++i) {
    out.ndcg_at[i] = expected_dcg(blocks, at[i]) / ideal_dcg(falling, at[i]);
    out.recall_at[i] = expected_recall(blocks, at[i], positives);
  }
  return out;
}

Metrics evaluate(std::vector<RankedGroup> const& groups, std::vector<std::int32_t> const& at) {
  Metrics out;
  out.at = at;
  out.ndcg_at.resize(at.size());
  out.recall_at.resize(at.size());
  RankedGroup all;
  double right = 0;
  for (auto const& group : groups) {
    auto const one = group_metrics(group, at);
    ++out.groups;
    bool const positive = std::any_of(group.labels.begin(), group.labels.end(), relevant);
    out.without_positive += positive ? 0 : 1;
    out.without_negative += positive && !one.counted ? 1 : 0;
    all.scores.insert(all.scores.end(), group.scores.begin(), group.scores.end());
    all.labels.insert(all.labels.end(), group.labels.begin(), group.labels.end());
    for (std::size_t i = 0; i < group.scores.size(); ++i)
      right += (group.scores[i] > 0) == (group.labels[i] > 0.5) ? 1 : 0;
    if (!one.counted) continue;
    ++out.counted;
    out.mrr += one.mrr;
    out.ndcg += one.ndcg;
    out.map += one.ap;
    for (std::size_t i = 0; i < at.size(); ++i) {
      out.ndcg_at[i] += one.ndcg_at[i];
      out.recall_at[i] += one.recall_at[i];
    }
  }
  out.documents = static_cast<std::int64_t>(all.scores.size());
  out.accuracy = right / std::max(1.0, static_cast<double>(out.documents));
  out.auc = area_under_curve(blocks_of(all));
  out.scores = statistics_of(all);
  auto const counted = std::max(1.0, static_cast<double>(out.counted));
  for (auto* mean : {&out.mrr, &out.ndcg, &out.map}) *mean /= counted;
  for (auto& mean : out.ndcg_at) mean /= counted;
  for (auto& mean : out.recall_at) mean /= counted;
  return out;
}

std::vector<std::pair<std::string, double>> named_values(Metrics const& metrics) {
  std::vector<std::pair<std::string, double>> values = {{"mrr", metrics.mrr},
                                                        {"ndcg", metrics.ndcg},
                                                        {"map", metrics.map},
                                                        {"auc", metrics.auc},
                                                        {"acc", metrics.accuracy}};
  for (std::size_t i = 0; i < metrics.at.size(); ++i)
    values.emplace_back(text("ndcg@", metrics.at[i]), metrics.ndcg_at[i]);
  for (std::size_t i = 0; i < metrics.at.size(); ++i)
    values.emplace_back(text("recall@", metrics.at[i]), metrics.recall_at[i]);
  return values;
}

double value_of(Metrics const& metrics, std::string const& name) {
  std::string known;
  for (auto const& [each, value] : named_values(metrics)) {
    if (each == name) return value;
    known += (known.empty() ? "" : ", ") + each;
  }
  throw Error(Exit::usage, text("there is no metric ", name), text("choose one of ", known),
              VLR_WHERE);
}

bool greater_is_better(std::string const& name) {
  return name != "loss";
}

}  // namespace vlrerank::ranking
