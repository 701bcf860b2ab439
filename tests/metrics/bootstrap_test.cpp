// tests/metrics/bootstrap_test.cpp -- confidence intervals from resampled queries.
#include "metrics/bootstrap.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"

namespace vlrerank::ranking {
namespace {

std::vector<double> uniform_values(std::size_t n, std::uint64_t seed) {
  KeyedRandom random(seed);
  std::vector<double> values(n);
  for (auto& value : values) value = random.uniform();
  return values;
}

TEST(Bootstrap, IntervalIsThatOfTheNormalDistributionForManyValues) {
  auto const interval = bootstrap_mean(uniform_values(400, 1), 4000, 42);

  // Standard deviation of a uniform number: sqrt(1/12); 1.96 of it over sqrt(400) to each side.
  auto const half = 1.96 * std::sqrt(1.0 / 12) / 20;
  EXPECT_NEAR(interval.high - interval.mean, half, half * 0.15);
  EXPECT_NEAR(interval.mean - interval.low, half, half * 0.15);
}

TEST(Bootstrap, IsAFunctionOfItsSeed) {
  auto const values = uniform_values(50, 2);

  EXPECT_EQ(bootstrap_mean(values, 500, 3).low, bootstrap_mean(values, 500, 3).low);
  EXPECT_NE(bootstrap_mean(values, 500, 3).low, bootstrap_mean(values, 500, 4).low);
}

TEST(Bootstrap, EqualValuesLeaveNoDoubt) {
  auto const interval = bootstrap_mean({0.5, 0.5, 0.5}, 100, 1);

  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
}

TEST(Bootstrap, WithoutValuesOrResamplesThereIsNoInterval) {
  EXPECT_EQ(bootstrap_mean({}, 100, 1).high, 0);
  auto const interval = bootstrap_mean({0, 1}, 0, 1);
  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
}

TEST(Bootstrap, ADifferenceIsDrawnByQuery) {
  // Queries differ much, the two models by the same little in each: the difference is certain.
  std::vector<RankedGroup> before;
  std::vector<RankedGroup> after;
  for (int i = 0; i < 40; ++i) {
    bool const easy = i % 2 == 0;
    before.push_back({{easy ? 2.5 : 0.0, 3.0, 2.0, 1.0}, {1, 0, 0, 0}});
    after.push_back({{easy ? 3.5 : 1.0, 3.0, 2.0, 1.0}, {1, 0, 0, 0}});
    before.push_back({{1.0}, {1}});  // not counted
    after.push_back({{9.0}, {1}});
  }

  auto const difference = mrr_difference(before, after, 1000, 42);
  auto const alone = mrr_interval(after, 1000, 42);

  // Easy: 1/2 -> 1. Hard: 1/4 -> the mean of 1/3 and 1/4, for its tie with the last.
  EXPECT_NEAR(difference.mean, (0.5 + (1.0 / 3 + 1.0 / 4) / 2 - 0.25) / 2, 1e-12);
  EXPECT_GT(difference.low, 0);
  EXPECT_LT(difference.high - difference.low, alone.high - alone.low);
}

TEST(Bootstrap, OtherGroupsAreNotCompared) {
  EXPECT_THROW(mrr_difference({{{1, 0}, {1, 0}}}, {}, 10, 1), Error);
  EXPECT_THROW(mrr_difference({{{1, 0}, {1, 0}}}, {{{1, 0}, {0, 1}}}, 10, 1), Error);
}

}  // namespace
}  // namespace vlrerank::ranking
