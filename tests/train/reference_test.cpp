// tests/train/reference_test.cpp -- the reference's training curves: ten LoRA steps and five full
// ones on two padded batches, made with transformers, peft and torch's AdamW.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/reranker.hpp"
#include "params/adapter.hpp"
#include "params/full.hpp"
#include "support/golden_batch.hpp"
#include "support/test_data.hpp"
#include "train/objective.hpp"
#include "train/schedule.hpp"
#include "zero/optimizer.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

json read_json(std::string const& name) {
  std::ifstream file(test_data("reference/train/" + name));
  return json::parse(file);
}

/// The tiny model, its two batches, and the reference's schedule.
class Curve {
 public:
  explicit Curve(json const& log) : log_(log), model_(ModelConfig::load(tiny())) {
    model_.load(TensorFiles::open(tiny()), at::kFloat, at::kCPU);
    model_.set_answer_ids(9693, 2152);
    for (int number : {0, 1}) {
      auto const golden = read_golden(
          TensorFiles::open(test_data(text("reference/train/batch", number, ".safetensors"))));
      batches_.push_back(pack_golden(golden, Share::nothing));
    }
    auto const& hyper = log.at("hyper_parameters");
    settings_.max_grad_norm = hyper.at("max_grad_norm");
    schedule_.warmup_steps = hyper.at("warmup_steps");
    steps_ = hyper.at("total_steps");
    peak_ = hyper.at("learning_rate");
  }

  Reranker& model() { return model_; }

  /// Trains and compares losses, learning rates and gradient norms with the log.
  void run(std::vector<Arena>& arenas) {
    auto const comm = make_self_communicator(at::kCPU);
    ShardedAdamW optimizer(arenas, *comm, settings_, ZeroStage::replicated);
    for (std::int64_t step = 0; step < steps_; ++step) {
      SCOPED_TRACE(text("step ", step));
      auto const& want = log_.at("steps").at(static_cast<std::size_t>(step));
      auto const loss = pass(step % 2, true);
      EXPECT_NEAR(loss, want.at("loss").get<double>(), 1e-5);
      double const rate = peak_ * learning_rate_factor(schedule_, peak_, step, steps_);
      EXPECT_NEAR(rate, want.at("lr").get<double>(), 1e-12);
      double const norm = optimizer.step({rate, rate, rate},
                                         batches_[static_cast<std::size_t>(step % 2)].grids.empty()
                                             ? Pictures::none
                                             : Pictures::some);
      double const golden_norm = want.at("grad_norm_before_clip");
      EXPECT_NEAR(norm, golden_norm, 1e-4 * golden_norm);
    }
    for (int number : {0, 1})
      EXPECT_NEAR(
          pass(number, false),
          log_.at("loss_after_last_step").at(static_cast<std::size_t>(number)).get<double>(), 1e-5);
    first_moments_ = moments(arenas, [&](std::size_t i) { return optimizer.first_moment(i); });
    second_moments_ = moments(arenas, [&](std::size_t i) { return optimizer.second_moment(i); });
  }

  std::map<std::string, at::Tensor> const& first_moments() const { return first_moments_; }
  std::map<std::string, at::Tensor> const& second_moments() const { return second_moments_; }

 private:
  static std::filesystem::path tiny() { return test_data("reference/tiny-model"); }

  double pass(std::int64_t number, bool training) {
    auto const& batch = batches_.at(static_cast<std::size_t>(number));
    ForwardContext context;
    context.training = training;
    auto const scores = model_.forward(batch, context);
    LossGroup const group{0, scores.numel(), 1.0 / static_cast<double>(scores.numel())};
    LossParameters const loss;
    auto const result =
        reranker_loss(scores, loss_terms(batch.labels, {&group, 1}, loss, at::kCPU), loss);
    if (training) model_.backward(result.gradient);
    return result.loss.item<double>();
  }

  template <class Moment>
  static std::map<std::string, at::Tensor> moments(std::vector<Arena> const& arenas,
                                                   Moment moment) {
    std::map<std::string, at::Tensor> out;
    for (std::size_t i = 0; i < arenas.size(); ++i)
      for (auto const& slice : arenas[i].slices())
        out[slice.name] = moment(i).narrow(0, slice.offset, slice.numel).view(slice.shape);
    return out;
  }

  json log_;
  Reranker model_;
  std::vector<PackedBatch> batches_;
  OptimizerSettings settings_;
  ScheduleSettings schedule_;
  std::int64_t steps_ = 0;
  double peak_ = 0;
  std::map<std::string, at::Tensor> first_moments_, second_moments_;
};

double relative(at::Tensor const& got, at::Tensor const& want) {
  return ((got - want).norm() / want.norm().clamp_min(1e-12)).item<double>();
}

TEST(ReferenceCurve, LoraEndsInPeftsAdapterAndTorchsMoments) {
  Curve curve(read_json("lora/log.json"));
  auto const init = test_data("reference/train") / "lora/adapter_init";
  auto arenas =
      attach_adapter(curve.model().linears(), load_adapter_config(init), 1, 128, at::kCPU);
  load_adapter(init, curve.model().linears());

  curve.run(arenas);

  auto const want =
      TensorFile::open(init.parent_path() / "adapter_final/adapter_model.safetensors");
  auto const state = TensorFile::open(init.parent_path() / "optimizer_final.safetensors");
  std::size_t compared = 0;
  for (auto const& arena : arenas)
    for (std::size_t i = 0; i < arena.slices().size(); ++i, ++compared) {
      auto const& name = arena.slices()[i].name;
      EXPECT_LT((arena.parameter(i).detach() - want.get(name)).abs().max().item<double>(), 1e-5)
          << name;
      EXPECT_LT(relative(curve.first_moments().at(name), state.get(name + ".exp_avg")), 1e-3)
          << name;
      EXPECT_LT(relative(curve.second_moments().at(name), state.get(name + ".exp_avg_sq")), 1e-3)
          << name;
    }
  EXPECT_EQ(compared, want.tensors().size());
}

TEST(ReferenceCurve, FullTrainingOfTheDecoderEndsInTorchsWeights) {
  Curve curve(read_json("full/log_llm_only.json"));
  auto arenas = attach_full(curve.model().parameters(), TrainableSettings{}, 128, at::kCPU);

  curve.run(arenas);

  auto const want =
      TensorFile::open(test_data("reference/train") / "full/final_llm_only.safetensors");
  std::size_t compared = 0;
  for (auto const& arena : arenas)
    for (std::size_t i = 0; i < arena.slices().size(); ++i) {
      auto const& name = arena.slices()[i].name;
      if (!want.tensors().contains(name)) continue;
      ++compared;
      EXPECT_LT((arena.parameter(i).detach() - want.get(name)).abs().max().item<double>(), 2e-5)
          << name;
    }
  EXPECT_GT(compared, 50u);
}

TEST(ReferenceCurve, FullTrainingOfEverythingFollowsTheLog) {
  auto const log = read_json("full/log_all.json");
  Curve curve(log);
  TrainableSettings everything;
  everything.freeze_vit = everything.freeze_aligner = false;
  auto arenas = attach_full(curve.model().parameters(), everything, 128, at::kCPU);

  curve.run(arenas);

  auto const& norms = log.at("final_norms");
  std::size_t compared = 0;
  for (auto const& arena : arenas)
    for (std::size_t i = 0; i < arena.slices().size(); ++i, ++compared) {
      auto const& name = arena.slices()[i].name;
      double const want = norms.at(name);
      EXPECT_NEAR(arena.parameter(i).detach().norm().item<double>(), want,
                  2e-5 * std::max(1.0, want))
          << name;
    }
  EXPECT_EQ(compared, norms.size());
}

}  // namespace
}  // namespace vlrerank
