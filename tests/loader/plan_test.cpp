// tests/loader/plan_test.cpp -- no layout loses, doubles or re-weighs a document.
#include "loader/plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "loader/loader.hpp"
#include "shards/synthetic.hpp"
#include "support/temporary_folder.hpp"

namespace vlrerank {
namespace {

constexpr std::int64_t row_count = 23;

/// 23 synthetic rows in two sets of one shard each.
class Plans : public ::testing::Test {
 protected:
  Plans() : data_(make()) {}

  DataSet make() {
    std::vector<ShardSet> sets;
    unsigned number = 0;
    for (auto const& [name, rows] : {std::pair{"a", 14}, std::pair{"b", 9}}) {
      auto const folder = folder_ / name;
      std::filesystem::create_directories(folder);
      ShardWriter writer(folder, "part", 0, test::recipe());
      for (int i = 0; i < rows; ++i) writer.append(test::row(number++));
      write_manifest(folder, "part", test::recipe(), {writer.finish(Durability::cached)});
      sets.push_back(ShardSet::open(folder));
    }
    return DataSet(std::move(sets));
  }

  using Weights = std::map<std::pair<std::int64_t, std::int32_t>, double>;
  /// Weight of every document of a step, from the work of all ranks.
  Weights weights(TrainPlan const& plan, std::int64_t step, int ranks) {
    Weights out;
    for (int rank = 0; rank < ranks; ++rank)
      for (auto const& batch : plan.step(step, rank, ranks).mine)
        for (auto const& piece : batch)
          for (auto const document : piece.documents) {
            bool const fresh = out.emplace(std::pair{piece.row, document}, piece.weight).second;
            EXPECT_TRUE(fresh) << "row " << piece.row << " document " << document << " twice";
          }
    return out;
  }

  TemporaryFolder folder_;
  DataSet data_;
};

TEST_F(Plans, EveryRowOnceAnEpochAndTheSameForAnyRanksAndBudget) {
  PlanSettings settings;
  settings.global_batch_size = 5;
  TrainPlan const plan(data_, settings);
  settings.micro_batch_tokens = 40;
  settings.share_prefix = false;
  TrainPlan const tight(data_, settings);
  ASSERT_EQ(plan.steps_per_epoch(), 5);

  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<std::int64_t> rows;
    for (std::int64_t step = 5 * epoch; step < 5 * epoch + 5; ++step) {
      auto const one = weights(plan, step, 1);
      for (int const ranks : {2, 3, 4, 9}) EXPECT_EQ(weights(plan, step, ranks), one);
      EXPECT_EQ(weights(tight, step, 3), one);
      double sum = 0;
      for (auto const& [document, weight] : one) {
        sum += weight;
        rows.insert(document.first);
      }
      EXPECT_NEAR(sum, 1, 1e-12);
    }
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(row_count));
  }
}

TEST_F(Plans, MicroBatchesKeepToTheBudgetUnlessOneDocumentIsLonger) {
  PlanSettings settings;
  settings.global_batch_size = row_count;
  settings.micro_batch_tokens = 60;
  auto const step = TrainPlan(data_, settings).step(0, 0, 1);

  ASSERT_GT(step.mine.size(), 3u);
  for (auto const& batch : step.mine) {
    std::int64_t tokens = 0;
    std::size_t documents = 0;
    for (auto const& piece : batch) {
      EXPECT_EQ(piece.tokens, piece_tokens(data_.index(piece.row), piece.documents, true));
      tokens += piece.tokens;
      documents += piece.documents.size();
    }
    EXPECT_TRUE(tokens <= 60 || documents == 1) << tokens;
  }
}

TEST_F(Plans, TheShortLastStepIsKeptOrDropped) {
  PlanSettings settings;
  settings.global_batch_size = 6;

  EXPECT_EQ(TrainPlan(data_, settings).step(3, 0, 1).rows, 5);
  EXPECT_DOUBLE_EQ(TrainPlan(data_, settings).step(3, 0, 1).progress, 1.0);
  settings.drop_last = true;
  EXPECT_EQ(TrainPlan(data_, settings).steps_per_epoch(), 3);
}

TEST_F(Plans, SumOfMeansWeighsEachWindowAlikeAndAveragesRanks) {
  PlanSettings settings;
  settings.global_batch_size = 6;
  settings.shuffle = false;
  settings.sum_of_means = true;
  settings.window = 2;
  settings.replicas = 3;
  auto const got = weights(TrainPlan(data_, settings), 0, 2);

  double sum = 0;
  for (auto const& [document, weight] : got) sum += weight;
  EXPECT_NEAR(sum, 3 * (1.0 / 3), 1e-12);  // three windows, each 1 / replicas
}

TEST_F(Plans, RanksWithoutWorkGetNone) {
  PlanSettings settings;
  settings.global_batch_size = 1;
  auto const plan = TrainPlan(data_, settings);

  int busy = 0;
  for (int rank = 0; rank < 4; ++rank) busy += !plan.step(0, rank, 4).mine.empty();
  EXPECT_EQ(busy, 1);
}

TEST_F(Plans, EvaluationTakesWholeListsOnce) {
  std::size_t want = 0;
  for (std::int64_t row = 0; row < data_.rows(); ++row) want += data_.index(row).labels.size();

  for (int const ranks : {1, 3}) {
    std::set<std::pair<std::int64_t, std::int32_t>> seen;
    std::size_t count = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (auto const& batch : evaluation_plan(data_, 50, true, rank, ranks))
        for (auto const& piece : batch)
          for (auto const document : piece.documents) {
            seen.emplace(piece.row, document);
            ++count;
          }
    EXPECT_EQ(count, want);
    EXPECT_EQ(seen.size(), want);
  }
}

TEST_F(Plans, ASplitKeepsEveryRowOnceAndDependsOnTheSeed) {
  auto lines = [](DataSet const& part) {
    std::vector<std::int64_t> out;
    for (std::int64_t row = 0; row < part.rows(); ++row) out.push_back(part.read(row).row.line);
    return out;
  };
  auto const [train, held] = data_.split(0.2, 42);

  EXPECT_EQ(train.rows(), 18);
  EXPECT_EQ(held.rows(), 5);
  auto all = lines(train);
  for (auto const line : lines(held)) all.push_back(line);
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 23u);
  EXPECT_EQ(lines(data_.split(0.2, 42).second), lines(held));
  EXPECT_NE(lines(data_.split(0.2, 43).second), lines(held));
}

}  // namespace
}  // namespace vlrerank
