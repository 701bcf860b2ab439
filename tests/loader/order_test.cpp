// tests/loader/order_test.cpp -- orders and choices are functions of (seed, epoch, row) alone.
#include "loader/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace vlrerank {
namespace {

std::vector<float> labels(int positives, int negatives) {
  std::vector<float> out(static_cast<std::size_t>(positives), 1.0f);
  out.resize(static_cast<std::size_t>(positives + negatives), 0.0f);
  return out;
}

TEST(EpochOrder, VisitsEveryRowOnceAndChangesWithSeedAndEpoch) {
  auto const order = epoch_order(1000, 42, 0, Shuffle::yes);

  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(order, epoch_order(1000, 42, 0, Shuffle::yes));
  EXPECT_NE(order, epoch_order(1000, 42, 1, Shuffle::yes));
  EXPECT_NE(order, epoch_order(1000, 43, 0, Shuffle::yes));
}

TEST(EpochOrder, WithoutShufflingIsTheFilesOrder) {
  EXPECT_EQ(epoch_order(3, 42, 5, Shuffle::no), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(EpochOrder, PutsEachRowEverywhereAboutEquallyOften) {
  std::vector<int> first(10, 0);
  for (std::int64_t epoch = 0; epoch < 10000; ++epoch)
    ++first[static_cast<std::size_t>(epoch_order(10, 7, epoch, Shuffle::yes)[0])];

  for (int const count : first) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST(ChooseDocuments, KeepsAllWhenTheyAreFew) {
  EXPECT_EQ(choose_documents(labels(1, 3), 1, 7, 42, 0, 5),
            (std::vector<std::int32_t>{0, 1, 2, 3}));
}

TEST(ChooseDocuments, LimitsEachKindAndPutsPositivesFirst) {
  std::vector<float> const mixed{0, 1, 0, 0.7f, 0, 0.2f};

  auto const chosen = choose_documents(mixed, 1, 2, 42, 0, 5);

  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_TRUE(chosen[0] == 1 || chosen[0] == 3);
  EXPECT_LT(mixed[static_cast<std::size_t>(chosen[1])], 0.5f);
  EXPECT_LT(mixed[static_cast<std::size_t>(chosen[2])], 0.5f);
}

TEST(ChooseDocuments, DependsOnEpochAndRowAndReachesEveryNegative) {
  std::set<std::int32_t> seen;
  std::set<std::vector<std::int32_t>> choices;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    auto const chosen = choose_documents(labels(1, 30), 1, 3, 42, epoch, 9);
    EXPECT_EQ(chosen, choose_documents(labels(1, 30), 1, 3, 42, epoch, 9));
    seen.insert(chosen.begin(), chosen.end());
    choices.insert(chosen);
  }

  EXPECT_EQ(seen.size(), 31u);
  EXPECT_GT(choices.size(), 40u);
  EXPECT_NE(choose_documents(labels(1, 30), 1, 3, 42, 0, 1),
            choose_documents(labels(1, 30), 1, 3, 42, 0, 2));
}

TEST(ChooseDocuments, PositiveOnlyAndNegativeOnlyRowsAreLegal) {
  EXPECT_EQ(choose_documents(labels(2, 0), 1, 7, 1, 0, 0).size(), 1u);
  EXPECT_EQ(choose_documents(labels(0, 2), 1, 7, 1, 0, 0).size(), 2u);
}

}  // namespace
}  // namespace vlrerank
