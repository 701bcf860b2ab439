// tests/metrics/ranking_test.cpp -- ranking metrics: against plain definitions averaged over every
// order of tied documents, and against figures worked out elsewhere.
#include "metrics/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"

namespace vlrerank::ranking {
namespace {

constexpr double kTolerance = 1e-12;  // rounding of sums over a few terms

/// Metrics of one strict order, by their textbook definitions.
GroupMetrics plain_metrics(std::vector<double> const& labels, std::vector<std::int32_t> const& at) {
  GroupMetrics out;
  auto const n = labels.size();
  double const all = static_cast<double>(
      std::count_if(labels.begin(), labels.end(), [](double label) { return label > 0; }));
  auto falling = labels;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  auto const ndcg = [&](std::size_t k) {
    double gain = 0;
    double ideal = 0;
    for (std::size_t i = 0; i < std::min(k, n); ++i) {
      gain += labels[i] / std::log2(static_cast<double>(i) + 2);
      ideal += falling[i] / std::log2(static_cast<double>(i) + 2);
    }
    return gain / ideal;
  };
  double hits = 0;
  double right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (labels[i] > 0) {
      if (hits == 0) out.mrr = 1 / static_cast<double>(i + 1);
      ++hits;
      out.ap += hits / static_cast<double>(i + 1) / all;
    } else {
      right += hits;
    }
  }
  out.auc = right / (all * (static_cast<double>(n) - all));
  out.ndcg = ndcg(n);
  for (auto const k : at) {
    auto const first = labels.begin();
    auto const last = first + std::min<std::ptrdiff_t>(k, static_cast<std::ptrdiff_t>(n));
    out.ndcg_at.push_back(ndcg(static_cast<std::size_t>(k)));
    out.recall_at.push_back(
        static_cast<double>(std::count_if(first, last, [](double label) { return label > 0; })) /
        all);
  }
  return out;
}

/// The mean of plain_metrics over every order in which scores fall.
GroupMetrics mean_over_orders(RankedGroup const& group, std::vector<std::int32_t> const& at) {
  GroupMetrics mean;
  mean.ndcg_at.resize(at.size());
  mean.recall_at.resize(at.size());
  std::vector<std::size_t> order(group.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double orders = 0;
  do {
    auto const falls = [&](auto a, auto b) { return group.scores[a] > group.scores[b]; };
    if (!std::is_sorted(order.begin(), order.end(), falls)) continue;
    std::vector<double> labels;
    for (auto const i : order) labels.push_back(group.labels[i]);
    auto const one = plain_metrics(labels, at);
    ++orders;
    mean.mrr += one.mrr;
    mean.ap += one.ap;
    mean.ndcg += one.ndcg;
    mean.auc += one.auc;
    for (std::size_t i = 0; i < at.size(); ++i) {
      mean.ndcg_at[i] += one.ndcg_at[i];
      mean.recall_at[i] += one.recall_at[i];
    }
  } while (std::next_permutation(order.begin(), order.end()));
  for (auto* value : {&mean.mrr, &mean.ap, &mean.ndcg, &mean.auc}) *value /= orders;
  for (auto& value : mean.ndcg_at) value /= orders;
  for (auto& value : mean.recall_at) value /= orders;
  return mean;
}

TEST(Ranking, TiesCountByTheMeanOverAllTheirOrders) {
  std::vector<std::int32_t> const at = {1, 2, 3, 5, 10};
  KeyedRandom random(7);
  int ranked = 0;
  for (int i = 0; i < 150; ++i) {
    RankedGroup group;
    auto const documents = 2 + random.below(5);
    auto const levels = 1 + random.below(4);
    for (std::uint64_t j = 0; j < documents; ++j) {
      group.scores.push_back(static_cast<double>(random.below(levels)) - 1);
      group.labels.push_back(static_cast<double>(random.below(4)) / (i % 2 == 0 ? 3 : 1e9));
      if (i % 3 == 0) group.labels.back() = group.labels.back() > 0 ? 1 : 0;
    }
    auto const got = group_metrics(group, at);
    if (!got.counted) continue;
    ++ranked;
    auto const wanted = mean_over_orders(group, at);
    EXPECT_NEAR(got.mrr, wanted.mrr, kTolerance);
    EXPECT_NEAR(got.ap, wanted.ap, kTolerance);
    EXPECT_NEAR(got.ndcg, wanted.ndcg, kTolerance);
    EXPECT_NEAR(got.auc, wanted.auc, kTolerance);
    for (std::size_t k = 0; k < at.size(); ++k) {
      EXPECT_NEAR(got.ndcg_at[k], wanted.ndcg_at[k], kTolerance) << at[k];
      EXPECT_NEAR(got.recall_at[k], wanted.recall_at[k], kTolerance) << at[k];
    }
  }
  EXPECT_GT(ranked, 80);
}

TEST(Ranking, ACollapsedModelGetsWhatChanceGives) {
  auto const got = group_metrics({{2, 2, 2, 2}, {1, 0, 0, 0}}, {1});

  EXPECT_NEAR(got.mrr, (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4) / 4, kTolerance);
  EXPECT_NEAR(got.auc, 0.5, kTolerance);
  EXPECT_NEAR(got.recall_at[0], 0.25, kTolerance);
}

// Public case L04: several positives of a query are one group; worked out with numpy.
TEST(Ranking, AgreesWithThePublicCaseL04) {
  std::vector<RankedGroup> const groups = {{{0.9, 0.1, 0.2}, {1, 0, 0}},
                                           {{0.2, 0.6, 0.7, 0.1}, {1, 1, 0, 0}},
                                           {{0.5, 0.4, 0.3}, {0, 0, 1}},
                                           {{0.5, 0.4}, {0, 0}},
                                           {{0.3}, {1}},
                                           {{-3.0, 2.0, 1.5, -0.5, 1.75}, {1, 0, 1, 0, 0}}};

  auto const got = evaluate(groups, {});

  EXPECT_NEAR(got.mrr, 0.5416666666666666, 1e-6);
  EXPECT_NEAR(got.ndcg, 0.684299428192324, 1e-6);
  EXPECT_NEAR(got.map, 0.5708333333333333, 1e-6);
  EXPECT_EQ(got.counted, 4);
  EXPECT_EQ(got.groups, 6);
  EXPECT_EQ(got.without_positive, 1);
  EXPECT_EQ(got.without_negative, 1);
  EXPECT_NEAR(group_metrics(groups[5], {}).ndcg, 0.5437713091520254, 1e-6);
}

TEST(Ranking, GradedLabelsCountByTheirDegree) {
  RankedGroup const best = {{3, 2, 1}, {1, 0.5, 0}};
  RankedGroup const swapped = {{2, 3, 1}, {1, 0.5, 0}};

  EXPECT_NEAR(group_metrics(best, {}).ndcg, 1, kTolerance);
  EXPECT_NEAR(group_metrics(swapped, {}).ndcg,
              (0.5 + 1 / std::log2(3.0)) / (1 + 0.5 / std::log2(3.0)), kTolerance);
}

TEST(Ranking, DoesNotDependOnTheOrderOfDocuments) {
  RankedGroup const a = {{1, 1, 2, 0}, {1, 0, 0, 1}};
  RankedGroup const b = {{0, 2, 1, 1}, {1, 0, 0, 1}};

  EXPECT_DOUBLE_EQ(group_metrics(a, {2}).ap, group_metrics(b, {2}).ap);
  EXPECT_DOUBLE_EQ(group_metrics(a, {2}).ndcg_at[0], group_metrics(b, {2}).ndcg_at[0]);
}

TEST(Ranking, LongListsOfTiesStayExact) {
  RankedGroup group;
  group.scores.assign(100000, 0.25);
  group.labels.assign(100000, 0);
  for (std::size_t i = 0; i < 50000; ++i) group.labels[i] = 1;

  auto const got = group_metrics(group, {10});

  double expected = 0;  // half of the documents: the first relevant at place j with 2^-j, nearly
  for (int j = 1; j < 60; ++j) expected += std::pow(0.5, j) / j;
  EXPECT_NEAR(got.mrr, expected, 1e-5);
  EXPECT_NEAR(got.ndcg_at[0], 0.5, 1e-9);
}

TEST(Ranking, AreaUnderTheCurveSpansAllGroups) {
  std::vector<RankedGroup> const groups = {{{1, 0}, {1, 0}}, {{5, 4}, {1, 0}}};

  EXPECT_NEAR(evaluate(groups, {}).auc, 0.75, kTolerance);  // 1 < 4 is the one wrong pair of four
}

TEST(Ranking, AccuracyIsTheShareOfRightDecisions) {
  std::vector<RankedGroup> const groups = {{{0.5, -0.5, 2}, {1, 0, 0}}, {{-1}, {1}}};

  EXPECT_NEAR(evaluate(groups, {}).accuracy, 0.5, kTolerance);
}

TEST(Ranking, NothingToRankGivesZerosAndCounts) {
  EXPECT_EQ(evaluate({}, {1}).groups, 0);
  auto const got = evaluate({{{}, {}}, {{1}, {1}}}, {1});
  EXPECT_EQ(got.counted, 0);
  EXPECT_EQ(got.mrr, 0);
  EXPECT_EQ(got.auc, 0.5);
}

TEST(Ranking, InfiniteScoresHaveAPlaceAndOthersAreRefused) {
  auto const infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(group_metrics({{infinite, 1, -infinite}, {1, 0, 0}}, {}).mrr, 1);
  try {
    group_metrics({{1, std::nan("")}, {1, 0}}, {});
    FAIL() << "a score that is not a number was ranked";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::diverged);
    EXPECT_NE(error.summary().find("document 2"), std::string::npos);
  }
}

TEST(ScoreStatistics, TellACollapse) {
  EXPECT_TRUE(evaluate({{{20, 30, 25}, {1, 0, 0}}}, {}).scores.collapsed);  // all say yes
  EXPECT_TRUE(evaluate({{{0.1, 0.1, 0.1}, {1, 0, 0}}}, {}).scores.collapsed);
  EXPECT_FALSE(evaluate({{{0.1, 0.2, 0.1}, {1, 0, 0}}}, {}).scores.collapsed);
  EXPECT_FALSE(evaluate({{{0.1}, {1}}}, {}).scores.collapsed);
}

TEST(ScoreStatistics, GiveMeansAndSpread) {
  auto const scores = evaluate({{{3, 1}, {1, 0}}, {{5, -1}, {1, 0}}}, {}).scores;

  EXPECT_NEAR(scores.positive_mean, 4, kTolerance);
  EXPECT_NEAR(scores.negative_mean, 0, kTolerance);
  EXPECT_NEAR(scores.spread, std::sqrt(5.0), kTolerance);
}

TEST(MetricNames, AreThoseOfTheOption) {
  auto const metrics = evaluate({{{1, 2}, {1, 0}}}, {1, 10});

  EXPECT_EQ(value_of(metrics, "mrr"), 0.5);
  EXPECT_EQ(value_of(metrics, "recall@10"), 1);
  EXPECT_EQ(value_of(metrics, "ndcg@1"), 0);
  EXPECT_THROW(value_of(metrics, "ndcg@7"), Error);
  EXPECT_TRUE(greater_is_better("ndcg@10"));
  EXPECT_FALSE(greater_is_better("loss"));
}

}  // namespace
}  // namespace vlrerank::ranking
