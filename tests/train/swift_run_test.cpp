// tests/train/swift_run_test.cpp -- the peer's own training runs, pair by pair.
// Its command line, rows and initial adapter go through our options, shards, loader and trainer;
// every logit, loss, learning rate, gradient norm and the final adapter must be its own.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/options.hpp"
#include "loader/dataset.hpp"
#include "prepare/prepare.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"
#include "train/trainer.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

constexpr double logit_limit = 5e-5;  // the reference's README, "Suggested limits"
constexpr double loss_limit = 1e-5;
constexpr double norm_limit = 1e-4;  // relative
constexpr double adapter_limit = 1e-5;

json const& golden() {
  static json const log = [] {
    std::ifstream file(test_data("reference/swift-run/log.json"));
    return json::parse(file).at("runs");
  }();
  return log;
}

/// Everything a run showed.
struct Seen {
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int32_t, double>>
      logits;  // step, row
  std::vector<StepTotals> steps;
  std::map<std::int64_t, std::vector<RowScores>> evaluations;
  std::map<std::string, at::Tensor> trained;
  Settings settings;
};

/// The peer's command line, less its plug-in and --use_cpu.
std::vector<std::string> command_line(std::string const& more,
                                      std::filesystem::path const& output) {
  auto const here = test_data("reference/swift-run").string();
  std::string const all = text(
      "--model ", test_data("reference/model").string(),
      " --model_type qwen3_vl_reranker --task_type generative_reranker --torch_dtype float32 "
      "--fp16 "
      "false --bf16 false --attn_impl sdpa --dataset ",
      here, "/train.jsonl --val_dataset ", here,
      "/dev.jsonl --split_dataset_ratio 0 --load_from_cache_file false --strict true --max_length "
      "4096 --dataset_shuffle false --val_dataset_shuffle false --train_dataloader_shuffle false "
      "--dataloader_num_workers 0 --seed 42 --data_seed 42 --per_device_train_batch_size 1 "
      "--per_device_eval_batch_size 1 --gradient_checkpointing false --warmup_ratio 0.1 "
      "--lr_scheduler_type cosine --weight_decay 0.1 --adam_beta1 0.9 --adam_beta2 0.95 "
      "--max_grad_norm 1.0 --logging_steps 1 --logging_first_step true --report_to none "
      "--check_model false --add_version false --output_dir ",
      output.string(), " ", more);
  std::istringstream words(all);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string lora() {
  return text(
      "--tuner_type lora --lora_rank 8 --lora_alpha 32 --lora_dropout 0 --target_modules "
      "all-linear --adapters ",
      test_data("reference/swift-run/adapter_init").string(), " ");
}

Seen run(std::string const& more) {
  TemporaryFolder const folder;
  auto const parsed = parse_options(
      "train", command_line(more, folder.path() / "out"), [](char const* name) -> char const* {
        return std::string(name) == "MAX_NEGATIVE_SAMPLES" ? "3" : nullptr;
      });
  auto const& settings = parsed.settings;
  auto const comm = make_self_communicator(at::kCPU);
  auto session = open_session(settings, Purpose::training, 128, {}, [](std::string const&) {});
  auto open = [&](std::vector<std::string> const& names) {
    auto request = prepare_request(settings.data, settings.run.seed, session.tokenizer);
    request.inputs = names;
    return DataSet(open_or_prepare(request, folder.path() / "cache", *comm));
  };
  auto const data = open(settings.data.dataset);
  auto const validation = open(settings.data.val_dataset);
  auto const directory = RunDirectory::create(folder.path() / "out", Existing::refuse);
  TrainLog log(false, directory.path(), settings, 0);
  Trainer trainer(settings, session, data, &validation, *comm, directory, log);
  Seen seen;
  seen.settings = settings;
  TrainerHooks hooks;
  hooks.scored = [&](std::int64_t step, PackedBatch const& batch, at::Tensor const& scores) {
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      seen.logits[{step, batch.rows[i]}][batch.documents[i]] =
          scores[static_cast<std::int64_t>(i)].item<double>();
  };
  hooks.stepped = [&](std::int64_t, StepTotals const& totals) { seen.steps.push_back(totals); };
  hooks.evaluated = [&](std::int64_t step, std::vector<RowScores> const& rows) {
    seen.evaluations[step] = rows;
  };
  trainer.set_hooks(hooks);
  EXPECT_EQ(trainer.run(), Exit::done);
  for (auto const& arena : session.arenas)
    for (std::size_t i = 0; i < arena.slices().size(); ++i)
      seen.trained[arena.slices()[i].name] = arena.parameter(i).detach().clone();
  return seen;
}

void expect_logits(json const& micro, std::map<std::int32_t, double> const& got) {
  auto const& want = micro.at("logits");
  ASSERT_EQ(got.size(), want.size());
  for (auto const& [document, logit] : got)
    EXPECT_NEAR(logit, want.at(static_cast<std::size_t>(document)).get<double>(), logit_limit)
        << "row " << micro.at("row");
}

/// @param loss_factor  of our logged loss to theirs
void expect_steps(Seen const& seen, json const& want, bool same_reduction) {
  ASSERT_EQ(seen.steps.size(), want.at("steps").size());
  for (std::size_t i = 0; i < seen.steps.size(); ++i) {
    SCOPED_TRACE(text("step ", i + 1));
    auto const& golden_step = want["steps"][i];
    auto const& step = seen.steps[i];
    for (auto const& micro : golden_step.at("micro"))
      expect_logits(micro, seen.logits.at({static_cast<std::int64_t>(i), micro.at("row")}));
    EXPECT_NEAR(step.learning_rate, golden_step.at("learning_rate_used").get<double>(), 1e-12);
    EXPECT_NEAR(step.correct / step.count, golden_step.at("acc").get<double>(), 1e-8);
    double const windows = static_cast<double>(golden_step.at("micro").size());
    double const factor = same_reduction ? 1 : windows;
    EXPECT_NEAR(step.loss * factor, golden_step.at("loss").get<double>(), loss_limit);
    double const norm = golden_step.at("grad_norm");
    EXPECT_NEAR(step.grad_norm * factor, norm, norm_limit * norm);
  }
}

void expect_evaluations(Seen const& seen, json const& want) {
  for (auto const& evaluation : want.at("evals")) {
    SCOPED_TRACE(text("evaluation at step ", evaluation.at("step")));
    auto const& rows = seen.evaluations.at(evaluation.at("step"));
    for (auto const& micro : evaluation.at("micro")) {
      std::map<std::int32_t, double> got;
      auto const& row = rows.at(micro.at("row").get<std::size_t>());
      for (std::size_t d = 0; d < row.scores.size(); ++d)
        got[static_cast<std::int32_t>(d)] = row.scores[d];
      expect_logits(micro, got);
    }
    auto const figures = evaluation_of(rows, loss_parameters(seen.settings.loss), {});
    EXPECT_NEAR(figures.loss, evaluation.at("eval_loss").get<double>(), loss_limit);
    EXPECT_NEAR(figures.metrics.mrr, evaluation.at("eval_mrr").get<double>(), 1e-9);
    EXPECT_NEAR(figures.metrics.ndcg, evaluation.at("eval_ndcg").get<double>(), 1e-9);
    if (seen.settings.loss.kind == "pointwise") {
      EXPECT_NEAR(figures.metrics.accuracy, evaluation.at("eval_acc").get<double>(), 1e-8);
    }
  }
}

void expect_adapter(Seen const& seen, std::filesystem::path const& directory) {
  auto const file = TensorFile::open(directory / "adapter_model.safetensors");
  ASSERT_EQ(seen.trained.size(), file.tensors().size());
  for (auto const& [name, value] : seen.trained)
    EXPECT_LT((value - file.get(name)).abs().max().item<double>(), adapter_limit) << name;
}

std::string pointwise(std::string const& more) {
  return lora() + "--loss_type pointwise_reranker --learning_rate 1e-3 " + more;
}

TEST(SwiftRun, InitialLogitsLossesAndNormsOfEveryRow) {
  auto const seen =
      run(lora() +
          "--loss_type pointwise_reranker --learning_rate 0 "
          "--gradient_accumulation_steps 1 --num_train_epochs 1 --eval_strategy steps "
          "--eval_steps 12 --save_strategy no");

  expect_steps(seen, golden().at("init"), true);
  expect_evaluations(seen, golden().at("init"));
}

TEST(SwiftRun, PointwiseLoraToTheFinalAdapterWithOurMean) {
  auto const seen =
      run(pointwise("--gradient_accumulation_steps 2 --num_train_epochs 2 "
                    "--eval_strategy steps --eval_steps 6 --save_strategy no"));

  expect_steps(seen, golden().at("pointwise"), false);
  expect_evaluations(seen, golden().at("pointwise"));
  expect_adapter(seen, test_data("reference/swift-run/adapter_final"));
}

TEST(SwiftRun, PointwiseLoraWithTheirSumOfMeans) {
  auto const seen =
      run(pointwise("--gradient_accumulation_steps 2 --num_train_epochs 2 --eval_strategy steps "
                    "--eval_steps 6 --save_strategy no --loss-reduction sum-of-means"));

  expect_steps(seen, golden().at("pointwise"), true);
  expect_adapter(seen, test_data("reference/swift-run/adapter_final"));
}

TEST(SwiftRun, ShortWindowsShowTheReduction) {
  auto const seen =
      run(pointwise("--gradient_accumulation_steps 5 --max_grad_norm 10 --num_train_epochs 2 "
                    "--eval_strategy no --save_strategy no --loss-reduction sum-of-means"));

  expect_steps(seen, golden().at("partial"), true);
}

TEST(SwiftRun, ListwiseLora) {
  auto const seen = run(lora() +
                        "--loss_type listwise_reranker --learning_rate 1e-3 "
                        "--gradient_accumulation_steps 2 --max_steps 6 --eval_strategy steps "
                        "--eval_steps 6 --save_strategy no --loss-reduction sum-of-means");

  expect_steps(seen, golden().at("listwise"), true);
  expect_evaluations(seen, golden().at("listwise"));
}

TEST(SwiftRun, FullFineTuning) {
  auto const seen =
      run("--tuner_type full --loss_type pointwise_reranker --learning_rate 1e-4 "
          "--gradient_accumulation_steps 2 --max_steps 6 --eval_strategy steps --eval_steps 6 "
          "--save_strategy no --loss-reduction sum-of-means");
  auto const& want = golden().at("full");

  expect_steps(seen, want, true);
  expect_evaluations(seen, want);
  auto const& norms = want.at("final_norms");
  ASSERT_EQ(seen.trained.size(), norms.size());
  for (auto const& [name, value] : seen.trained) {
    double const norm = value.norm(at::Scalar(2), at::kDouble).item<double>();
    EXPECT_NEAR(norm, norms.at(name).at(0).get<double>(), 1e-7 * norm) << name;
  }
}

}  // namespace
}  // namespace vlrerank
