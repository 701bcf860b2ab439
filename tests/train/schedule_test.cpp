// tests/train/schedule_test.cpp -- learning rates step by step.
#include "train/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace vlrerank {
namespace {

ScheduleSettings schedule(char const* kind, double ratio = 0) {
  ScheduleSettings settings;
  settings.kind = kind;
  settings.warmup_ratio = ratio;
  return settings;
}

TEST(Schedule, WarmUpStepsAreTheRatioRoundedUp) {
  EXPECT_EQ(warmup_steps(schedule("cosine", 0.1), 12), 2);
  EXPECT_EQ(warmup_steps(schedule("cosine", 0.1), 6), 1);
  EXPECT_EQ(warmup_steps(schedule("cosine", 0.1), 30), 3);
  EXPECT_EQ(warmup_steps(schedule("cosine", 0), 30), 0);
}

TEST(Schedule, CosineStartsAtZeroAndFollowsTheGoldenRun) {
  auto const s = schedule("cosine", 0.1);  // 2 of 12 steps

  EXPECT_EQ(learning_rate_factor(s, 1e-3, 0, 12), 0);
  EXPECT_EQ(learning_rate_factor(s, 1e-3, 1, 12), 0.5);
  EXPECT_EQ(learning_rate_factor(s, 1e-3, 2, 12), 1);
  EXPECT_NEAR(1e-3 * learning_rate_factor(s, 1e-3, 5, 12), 7.9389e-4, 5e-9);
  EXPECT_NEAR(1e-3 * learning_rate_factor(s, 1e-3, 11, 12), 2.4472e-5, 5e-10);
}

TEST(Schedule, LinearAndPolynomialReachZeroAtTheEnd) {
  auto polynomial = schedule("polynomial");
  polynomial.power = 2;

  EXPECT_NEAR(learning_rate_factor(schedule("linear"), 1, 9, 10), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate_factor(polynomial, 1, 5, 10), 0.25, 1e-12);
}

TEST(Schedule, ConstantIgnoresWarmUpAndItsNamesakeDoesNot) {
  EXPECT_EQ(learning_rate_factor(schedule("constant", 0.5), 1, 0, 10), 1);
  EXPECT_EQ(learning_rate_factor(schedule("constant_with_warmup", 0.5), 1, 1, 10), 0.2);
  EXPECT_EQ(learning_rate_factor(schedule("constant_with_warmup", 0.5), 1, 8, 10), 1);
}

TEST(Schedule, InverseSquareRootContinuesTheWarmUp) {
  auto const s = schedule("inverse_sqrt", 0.04);  // 4 of 100

  EXPECT_EQ(learning_rate_factor(s, 1, 4, 100), 1);
  EXPECT_NEAR(learning_rate_factor(s, 1, 16, 100), 0.5, 1e-12);
}

TEST(Schedule, MinimumRatesAreKept) {
  auto cosine = schedule("cosine_with_min_lr");
  cosine.min_lr = 1e-5;
  auto wsd = schedule("warmup_stable_decay", 0.1);
  wsd.min_lr = 1e-5;
  wsd.decay_steps = 20;

  EXPECT_NEAR(1e-4 * learning_rate_factor(cosine, 1e-4, 100, 100), 1e-5, 1e-12);
  EXPECT_EQ(learning_rate_factor(wsd, 1e-4, 50, 100), 1);
  EXPECT_EQ(learning_rate_factor(wsd, 1e-4, 79, 100), 1);
  EXPECT_NEAR(learning_rate_factor(wsd, 1e-4, 90, 100), 0.55, 1e-12);
}

TEST(Schedule, AnUnknownNameIsAUsageError) {
  EXPECT_THROW(learning_rate_factor(schedule("zigzag"), 1, 5, 10), Error);
}

}  // namespace
}  // namespace vlrerank
