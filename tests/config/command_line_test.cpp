// tests/config/command_line_test.cpp -- what a command line means, and what it may not say.
#include <gtest/gtest.h>

#include "config/support.hpp"
#include "config/table.hpp"

namespace vlrerank {
namespace {

TEST(CommandLine, UnderlinesAndDashesAreTheSame) {
  auto const a = train("--learning_rate 5e-6 --lora_rank=16").settings;
  auto const b = train("--learning-rate=5e-6 --lora-rank 16").settings;

  EXPECT_EQ(to_json("train", a), to_json("train", b));
  EXPECT_DOUBLE_EQ(a.optimizer.learning_rate, 5e-6);
  EXPECT_EQ(a.lora.rank, 16);
}

TEST(CommandLine, BooleansTakeAWordOrNone) {
  EXPECT_TRUE(train("--strict").settings.data.strict);
  EXPECT_TRUE(train("--strict --max_steps 3").settings.data.strict);
  for (auto const* word : {"true", "on", "1", "True"})
    EXPECT_TRUE(train(text("--strict ", word)).settings.data.strict) << word;
  for (auto const* word : {"false", "off", "0", "False"})
    EXPECT_FALSE(train(text("--shuffle=", word)).settings.data.shuffle) << word;
  EXPECT_TRUE(contains(train_error("--strict maybe"), "--strict=maybe is neither true nor false"));
}

TEST(CommandLine, ListsTakeSeveralValuesAndMayBeRepeated) {
  auto const s = parse("train", "--dataset a.jsonl b.jsonl#10 --model M --dataset c").settings;

  EXPECT_EQ(s.data.dataset, (std::vector<std::string>{"a.jsonl", "b.jsonl#10", "c"}));
}

TEST(CommandLine, ModuleListsMayBeSeparatedByCommas) {
  std::vector<std::string> const wanted = {"q_proj", "v_proj"};

  EXPECT_EQ(train("--target_modules q_proj v_proj").settings.lora.targets, wanted);
  EXPECT_EQ(train("--target_modules q_proj,v_proj").settings.lora.targets, wanted);
  EXPECT_EQ(train("--target-modules q_proj --target_modules v_proj").settings.lora.targets, wanted);
  EXPECT_EQ(parse("eval", "--model M --dataset D --at 1,10 20").settings.eval.at,
            (std::vector<std::int32_t>{1, 10, 20}));
}

TEST(CommandLine, ARegularExpressionWithACommaStaysWhole) {
  EXPECT_EQ(
      train("--target_modules '^.*layers\\.[0-9]{1,2}\\..*(q|v)_proj$'").settings.lora.targets,
      (std::vector<std::string>{"^.*layers\\.[0-9]{1,2}\\..*(q|v)_proj$"}));
}

TEST(CommandLine, NegativeNumbersAreValues) {
  EXPECT_EQ(train("--max_steps -1").settings.run.max_steps, -1);
  EXPECT_TRUE(contains(train_error("--max_steps -2"), "--max-steps=-2 is out of range"));
}

TEST(CommandLine, EmptyTextIsAValue) {
  EXPECT_EQ(train("--instruction ''").settings.data.instruction, "");
  EXPECT_EQ(train("--instruction=").settings.data.instruction, "");
  EXPECT_EQ(train("--instruction 'a b c'").settings.data.instruction, "a b c");
}

TEST(CommandLine, UnknownOptionNamesTheNearest) {
  EXPECT_TRUE(contains(train_error("--lora_rnak 8"), "did you mean --lora-rank?"));
  EXPECT_TRUE(contains(train_error("--train-tipe lora"), "did you mean --train-type?"));
  EXPECT_TRUE(contains(train_error("--qqqqqqqqqq 8"), "unknown option --qqqqqqqqqq"));
}

TEST(CommandLine, AnOptionOfAnotherCommandIsNamedAsSuch) {
  auto const message = usage_error([] { parse("score", "--model M --learning_rate 1e-4"); });

  EXPECT_TRUE(contains(message, "--learning-rate is an option of check, train, not of score"))
      << message;
}

TEST(CommandLine, ValuesOutOfRangeNameTheRange) {
  auto const message = train_error("--lora-rank 0");
  EXPECT_TRUE(contains(message, "--lora-rank=0 is out of range")) << message;
  EXPECT_TRUE(contains(message, "choose 1 to 4096 (rank r of each LoRA pair)")) << message;
  EXPECT_TRUE(contains(train_error("--lora-rank 99999999999"), "is out of range"));
  EXPECT_TRUE(contains(train_error("--lora-rank 8.5"), "is not a whole number"));
  EXPECT_TRUE(contains(train_error("--lora-rank"), "--lora-rank needs a value"));
  EXPECT_TRUE(contains(train_error("--learning-rate fast"), "is not a number"));
  EXPECT_TRUE(contains(train_error("--learning-rate nan"), "is not a number"));
  EXPECT_TRUE(contains(train_error("--learning-rate -1e-4"), "is out of range"));
  EXPECT_TRUE(contains(train_error("--lora-dropout 1"), "choose 0 to 0.99"));
}

TEST(CommandLine, UnknownChoicesNameTheChoices) {
  auto const message = train_error("--tuner_type adalora");
  EXPECT_TRUE(contains(message, "--tuner-type=adalora is not known")) << message;
  EXPECT_TRUE(contains(message, "choose lora or full")) << message;
  EXPECT_TRUE(contains(train_error("--metric_for_best_model bleu"), "mrr, ndcg, ndcg@k"));
}

TEST(CommandLine, MissingOptionsAreNamedWithAnExample) {
  auto const message = usage_error([] { parse("train", "--lora-rank 8"); });

  EXPECT_TRUE(contains(message, "`vlrerank train` needs --model and --dataset")) << message;
  EXPECT_TRUE(contains(message, "for example: ")) << message;
  EXPECT_TRUE(contains(usage_error([] { parse("inspect", ""); }), "needs input"));
}

TEST(CommandLine, ArgumentsWithoutAnOptionAreRefusedWhereNoneBelong) {
  EXPECT_TRUE(
      contains(train_error("--lora-rank 8 9"), "unexpected argument `9` after --lora-rank"));
  EXPECT_TRUE(contains(usage_error([] { parse("train", "M"); }), "unexpected argument `M`"));
}

TEST(CommandLine, InspectTakesPathsAnywhere) {
  std::vector<std::string> const wanted = {"runs/a", "runs/b"};

  EXPECT_EQ(parse("inspect", "runs/a runs/b").settings.inputs, wanted);
  EXPECT_EQ(parse("inspect", "--input runs/a runs/b").settings.inputs, wanted);
}

TEST(CommandLine, TheLastOfARepeatedOptionCountsAndIsTold) {
  auto const parsed = train("--lora-rank 4 --lora-rank 16");

  EXPECT_EQ(parsed.settings.lora.rank, 16);
  EXPECT_TRUE(contains(notices(parsed), "--lora-rank is given more than once"));
}

TEST(CommandLine, TwoNamesOfOneOptionMayNotDisagree) {
  EXPECT_TRUE(contains(train_error("--fp16 true --torch_dtype bfloat16"), "disagree"));
  EXPECT_TRUE(contains(train_error("--fp16 true --bf16 true"), "disagree"));
  EXPECT_EQ(train("--bf16 true --torch_dtype bfloat16").settings.model.dtype, "bfloat16");
}

TEST(CommandLine, RatioAndStepsOfTheWarmUpExcludeEachOther) {
  EXPECT_TRUE(contains(train_error("--warmup_ratio 0.1 --warmup_steps 5"), "are both set"));
  EXPECT_EQ(train("--warmup_ratio 0 --warmup_steps 5").settings.schedule.warmup_steps, 5);
}

TEST(CommandLine, HelpIsAnsweredWhateverElseIsSaid) {
  EXPECT_TRUE(parse("train", "--help").help);
  EXPECT_TRUE(parse("train", "-h").help);
  EXPECT_TRUE(parse("train", "--lora-rank nonsense --help").help);
}

TEST(Defaults, FollowOtherSettings) {
  auto const lora = train("").settings;
  EXPECT_DOUBLE_EQ(lora.optimizer.learning_rate, 1e-4);
  EXPECT_DOUBLE_EQ(lora.optimizer.vit_lr, 1e-4);
  EXPECT_EQ(lora.run.eval_strategy, "no");
  EXPECT_EQ(lora.run.seed_data, 42);

  auto const full = train(
                        "--tuner full --val_dataset V --save_steps 7 --seed 3 --aligner_lr 1e-3 "
                        "--output_dir runs/a/")
                        .settings;
  EXPECT_DOUBLE_EQ(full.optimizer.learning_rate, 1e-5);
  EXPECT_DOUBLE_EQ(full.optimizer.aligner_lr, 1e-3);
  EXPECT_EQ(full.run.eval_strategy, "steps");
  EXPECT_EQ(full.run.eval_steps, 7);
  EXPECT_EQ(full.run.seed_data, 3);
  EXPECT_TRUE(contains(full.data.cache_dir, "/runs/.vlrerank-cache")) << full.data.cache_dir;
}

TEST(Defaults, TheBestMetricsCutOffIsComputedToo) {
  EXPECT_EQ(train("--metric_for_best_model ndcg@7").settings.eval.at,
            (std::vector<std::int32_t>{1, 3, 5, 7, 10}));
  EXPECT_EQ(train("--metric_for_best_model ndcg@5").settings.eval.at,
            (std::vector<std::int32_t>{1, 3, 5, 10}));
  EXPECT_EQ(train("--metric_for_best_model eval_loss").settings.run.metric_for_best_model, "loss");
}

TEST(Tables, NameEveryOptionOnce) {
  for (auto const& command : commands()) {
    Settings settings;
    std::map<std::string, int> seen;
    for (auto const& option : command.table(settings)) {
      ++seen[option.name];
      for (auto const& alias : option.aliases) ++seen[alias.name];
    }
    for (auto const& [name, times] : seen) {
      EXPECT_EQ(times, 1) << command.name << " --" << name;
      EXPECT_EQ(find_foreign(name), nullptr) << "--" << name << " is ours and ms-swift's";
    }
  }
}

}  // namespace
}  // namespace vlrerank
