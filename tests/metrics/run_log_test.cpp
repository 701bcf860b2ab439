// tests/metrics/run_log_test.cpp -- metrics.jsonl: keys, resuming, crashes.
#include "metrics/run_log.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "metrics/folder.hpp"

namespace vlrerank {
namespace {

class RunLogTest : public FolderTest {
 protected:
  std::filesystem::path file() const { return folder() / "metrics.jsonl"; }
  std::string content() const {
    std::ifstream stream(file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void put(std::string const& bytes) const { std::ofstream(file()) << bytes; }
  static LogRow row(std::int64_t step) { return {{"loss", 0.5}, {"step", step}}; }
};

TEST_F(RunLogTest, EachRowIsOneLineAsSoonAsItIsWritten) {
  auto log = RunLog::create(file());
  log.write({{"loss", 0.25}, {"step", std::int64_t{5}}, {"note", std::string("a\n\"b\"")}});

  EXPECT_EQ(content(), "{\"loss\":0.25,\"step\":5,\"note\":\"a\\n\\\"b\\\"\"}\n");
}

TEST_F(RunLogTest, CreateBeginsAnEmptyFile) {
  put("{\"step\":1}\n");
  auto log = RunLog::create(file());

  EXPECT_EQ(content(), "");
}

TEST_F(RunLogTest, ResumeKeepsRowsUpToTheStepByteForByte) {
  put("{\"loss\":0.10,\"step\":5}\n{\"eval_mrr\":1,\"step\":5}\n{\"loss\":3,\"step\":6}\n"
      "{\"loss\":3,\"step\":10}\n");
  RunLog::resume(file(), 5).write(row(6));

  EXPECT_EQ(content(),
            "{\"loss\":0.10,\"step\":5}\n{\"eval_mrr\":1,\"step\":5}\n{\"loss\":0.5,\"step\":6}\n");
}

TEST_F(RunLogTest, ResumeRemovesThePartialLineOfACrash) {
  for (std::string const partial : {"{\"loss\":0.1", "{\"loss\":0.1,\"step\":6}", "{", "xx\n"}) {
    put("{\"step\":5}\n" + partial);
    RunLog::resume(file(), 7).write(row(6));

    EXPECT_EQ(content(), "{\"step\":5}\n{\"loss\":0.5,\"step\":6}\n") << partial;
  }
}

TEST_F(RunLogTest, ResumeWithoutAFileBeginsOne) {
  RunLog::resume(file(), 7).write(row(8));

  EXPECT_EQ(content(), "{\"loss\":0.5,\"step\":8}\n");
}

TEST_F(RunLogTest, AFolderThatIsMissingIsNamed) {
  try {
    RunLog::create(folder() / "nowhere" / "metrics.jsonl");
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find("nowhere/metrics.jsonl"), std::string::npos);
  }
}

TEST(LogRows, OfTrainingHaveTheKeysOfMsSwift) {
  TrainingReport report;
  report.step = 20;
  report.max_steps = 1970;
  report.loss = 0.5;
  report.elapsed_seconds = 31;
  report.steps_done = 20;
  report.more = {{"cut_tokens", std::int64_t{3}}};

  auto const row = nlohmann::json::parse(to_json_line(training_row(report)));

  for (auto const* key : {"loss", "grad_norm", "learning_rate", "acc", "epoch", "memory(GiB)"})
    EXPECT_TRUE(row.at(key).is_number()) << key;
  EXPECT_EQ(row.at("global_step/max_steps"), "20/1970");
  EXPECT_EQ(row.at("elapsed_time"), "31s");
  EXPECT_EQ(row.at("remaining_time"), "50m 23s");  // 1950 steps of 1.55 s
  EXPECT_NEAR(row.at("train_speed(s/it)").get<double>(), 1.55, 1e-12);
  EXPECT_EQ(row.at("step"), 20);
  EXPECT_EQ(row.at("cut_tokens"), 3);
}

TEST(LogRows, OfEvaluationHaveTheKeysOfMsSwift) {
  EvaluationReport report;
  report.step = 500;
  report.max_steps = 1000;
  report.loss = 0.7;
  report.seconds = 2;
  auto const metrics = ranking::evaluate({{{1, 2}, {1, 0}}, {{1}, {1}}}, {10});

  auto const row = nlohmann::json::parse(to_json_line(evaluation_row(report, metrics)));

  EXPECT_EQ(row.at("eval_loss"), 0.7);
  EXPECT_EQ(row.at("eval_mrr"), 0.5);
  EXPECT_EQ(row.at("eval_samples_per_second"), 1.0);
  for (auto const* key : {"eval_ndcg", "eval_acc", "eval_map", "eval_auc", "eval_ndcg@10",
                          "eval_recall@10", "eval_runtime", "epoch"})
    EXPECT_TRUE(row.at(key).is_number()) << key;
  EXPECT_EQ(row.at("eval_groups_counted"), 1);
  EXPECT_EQ(row.at("step"), 500);
}

TEST(LogRows, StayJsonWhateverTheNumbers) {
  auto const infinite = std::numeric_limits<double>::infinity();

  EXPECT_EQ(to_json_line({{"a", infinite}, {"b", std::nan("")}, {"c", 1e-300}}),
            "{\"a\":null,\"b\":null,\"c\":1e-300}");
}

TEST(Durations, AreWrittenInDaysHoursMinutesSeconds) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.6), "1m 0s");
  EXPECT_EQ(duration_text(3086), "51m 26s");
  EXPECT_EQ(duration_text(10805), "3h 0m 5s");
  EXPECT_EQ(duration_text(93600), "1d 2h 0m 0s");
  EXPECT_EQ(duration_text(std::nan("")), "0s");
}

TEST(Durations, LeftAreUnknownBeforeTheFirstStep) {
  EXPECT_FALSE(remaining_seconds(TrainingReport{}).has_value());
}

}  // namespace
}  // namespace vlrerank
