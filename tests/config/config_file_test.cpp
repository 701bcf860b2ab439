// tests/config/config_file_test.cpp -- --config FILE and the run's record.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/support.hpp"
#include "config/table.hpp"

namespace vlrerank {
namespace {

/// A file of this test's own, removed at the end.
class ConfigFile : public testing::Test {
 protected:
  std::string written(std::string const& content) {
    path_ = std::filesystem::temp_directory_path() /
            text("vlrerank-config-", testing::UnitTest::GetInstance()->random_seed(), "-",
                 testing::UnitTest::GetInstance()->current_test_info()->name());
    std::ofstream(path_) << content;
    return path_.string();
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }

 private:
  std::filesystem::path path_;
};

TEST_F(ConfigFile, IsOverriddenByTheCommandLine) {
  auto const path =
      written("{\"model\": \"M\", \"dataset\": [\"a\", \"b\"], \"lora_rank\": 4, \"seed\": 9}");
  auto const s = parse("train", "--lora-rank 16 --config " + path).settings;

  EXPECT_EQ(s.lora.rank, 16);
  EXPECT_EQ(s.run.seed, 9U);
  EXPECT_EQ(s.data.dataset, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse("train", "--dataset c --config " + path).settings.data.dataset,
            (std::vector<std::string>{"c"}));
}

TEST_F(ConfigFile, ReadsNameValueLines) {
  auto const path = written(
      "# a comment\n"
      "model = /models/my reranker\n"
      "dataset = a.jsonl#5 \"with blank.jsonl\"   # another\n"
      "learning_rate=5e-6\n"
      "instruction = \"Find the user's page.\"\n"
      "target_modules = q_proj, v_proj\n"
      "strict = on\r\n");
  auto const s = parse("train", "--config " + path).settings;

  EXPECT_EQ(s.model.model, "/models/my reranker");
  EXPECT_EQ(s.data.dataset, (std::vector<std::string>{"a.jsonl#5", "with blank.jsonl"}));
  EXPECT_DOUBLE_EQ(s.optimizer.learning_rate, 5e-6);
  EXPECT_EQ(s.data.instruction, "Find the user's page.");
  EXPECT_EQ(s.lora.targets, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_TRUE(s.data.strict);
}

TEST_F(ConfigFile, TheRecordGivesTheSameSettingsBack) {
  auto const s =
      train(
          "--learning_rate 3.3e-7 --tuner full --dataset b --instruction 'a \"b\" ü' --at 2,4 "
          "--val_dataset v --max_steps 12 --data_seed 5 --target_modules 'x.*(a|b)' --share_prefix "
          "off --weight_decay 0.30000000000000004")
          .settings;
  auto const record = to_json("train", s);

  auto const again = parse("train", "--config " + written(record));

  EXPECT_EQ(to_json("train", again.settings), record);
  EXPECT_TRUE(again.notices.empty()) << notices(again);
}

TEST_F(ConfigFile, TheRecordOfEveryCommandIsAConfiguration) {
  for (auto const& command : commands()) {
    Settings settings;
    settings.model.model = "M";
    settings.data.dataset = {"D"};
    settings.output = settings.new_model.output = "O";
    settings.inputs = {"I"};
    auto const record = to_json(command.name, settings);

    auto const again = parse(command.name, "--config " + written(record));

    resolve(settings, command.name);
    EXPECT_EQ(to_json(command.name, again.settings), to_json(command.name, settings));
  }
}

TEST_F(ConfigFile, RecordHoldsResolvedValues) {
  auto const record = to_json("train", train("").settings);

  EXPECT_TRUE(contains(record, "\"learning-rate\": 0.0001")) << record;
  EXPECT_TRUE(contains(record, "\"data-seed\": 42")) << record;
}

TEST_F(ConfigFile, UnknownNamesAreRefused) {
  auto const path = written("{\"model\": \"M\", \"lora-rnak\": 4}");
  auto const message = usage_error([&] { parse("train", "--dataset D --config " + path); });

  EXPECT_TRUE(contains(message, "unknown option --lora-rnak")) << message;
  EXPECT_TRUE(contains(message, "did you mean --lora-rank?")) << message;
}

TEST_F(ConfigFile, NamesOfOtherCommandsAreLeftOutAndTold) {
  auto const path = written(to_json("train", train("--max_length 77").settings));
  auto const parsed = parse("eval", "--config " + path);

  EXPECT_EQ(parsed.settings.data.max_length, 77);
  EXPECT_TRUE(contains(notices(parsed), "not used by eval: ")) << notices(parsed);
}

TEST_F(ConfigFile, UnusableFilesAreRefusedWithTheirPlace) {
  EXPECT_TRUE(contains(train_error("--config /nowhere/x"), "cannot read --config /nowhere/x"));
  auto const line = written("lora-rank = 4\nnonsense\n");
  EXPECT_TRUE(contains(train_error("--config " + line), ":2: `nonsense` is no setting"));
  auto const broken = written("{\"lora-rank\": ");
  EXPECT_TRUE(contains(train_error("--config " + broken), "is not a JSON object"));
  auto const nested = written("{\"lora-rank\": {\"a\": 1}}");
  EXPECT_TRUE(contains(train_error("--config " + nested), "lora-rank has the value {"));
  auto const range = written("{\"lora-rank\": 0}");
  EXPECT_TRUE(contains(train_error("--config " + range), "--lora-rank=0 is out of range"));
}

TEST_F(ConfigFile, StandsBetweenTheEnvironmentAndTheCommandLine) {
  auto const path = written("{\"max-negatives\": 3}");
  Variables const variables = {{"MAX_NEGATIVE_SAMPLES", "5"}};

  EXPECT_EQ(train("", variables).settings.data.max_negatives, 5);
  EXPECT_EQ(train("--config " + path, variables).settings.data.max_negatives, 3);
  EXPECT_EQ(train("--max-negatives 2 --config " + path, variables).settings.data.max_negatives, 2);
}

TEST_F(ConfigFile, AWarmUpOnTheCommandLineReplacesTheFilesOther) {
  auto const path = written("{\"warmup-ratio\": 0.1}");
  auto const s = train("--warmup-steps 5 --config " + path).settings;

  EXPECT_EQ(s.schedule.warmup_steps, 5);
  EXPECT_EQ(s.schedule.warmup_ratio, 0);
}

}  // namespace
}  // namespace vlrerank
