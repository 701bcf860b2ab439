// train/trainer.hpp -- the loop: micro-batches, optimizer steps, evaluation, checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "config/settings.hpp"
#include "loader/loader.hpp"
#include "train/evaluate.hpp"
#include "train/figures.hpp"
#include "train/objective.hpp"
#include "train/run_directory.hpp"
#include "train/session.hpp"
#include "train/train_log.hpp"
#include "zero/optimizer.hpp"

namespace vlrerank {

/// How the options, the data and the ranks make a run's length.
struct RunLength {
  std::int64_t global_batch_size = 0;  // rows of an optimizer step
  std::int64_t accumulation = 0;       // micro-steps of per_device_train_batch_size rows a rank
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
};
/// Throws Error (exit 2) with the numbers when there would be no step at all.
RunLength run_length(Settings const& settings, std::int64_t rows, int ranks);

/// What may watch a run without changing it. Called on every rank; any may be empty.
struct TrainerHooks {
  /// After the forward pass of a micro-batch, with its scores [S].
  std::function<void(std::int64_t step, PackedBatch const&, at::Tensor const& scores)> scored;
  /// After an optimizer step, with its own totals.
  std::function<void(std::int64_t step, StepTotals const&)> stepped;
  /// After an evaluation, with all rows.
  std::function<void(std::int64_t step, std::vector<RowScores> const&)> evaluated;
};

class Trainer {
 public:
  /// Keeps references; all must outlive it. `validation` may be null.
  Trainer(Settings const& settings, Session& session, DataSet const& data,
          DataSet const* validation, Communicator& control, RunDirectory const& directory,
          TrainLog& log);

  void set_hooks(TrainerHooks hooks) { hooks_ = std::move(hooks); }
  /// Continues from a checkpoint of this run or another with the same trainable parts.
  void resume(std::filesystem::path const& checkpoint);
  /// Runs to the end, or until a signal asks to stop.
  /// @return  done, or requeue when it stopped early with a checkpoint
  Exit run();

 private:
  void train_step(StepPlan const& plan, Loader& loader);
  void skip_bad_step(StepPlan const& plan, double loss, double grad_norm);
  void log_step(std::int64_t step, double progress);
  void evaluate(std::int64_t step);
  void save(std::int64_t step);
  bool stop_requested();

  Settings const& settings_;
  Session& session_;
  DataSet const& data_;
  DataSet const* validation_;
  Communicator& control_;
  RunDirectory const& directory_;
  TrainLog& log_;
  RunLength length_;
  PlanSettings plan_settings_;
  LossParameters loss_;
  ShardedAdamW optimizer_;
  TrainerState state_;
  std::optional<Evaluation> base_;    // of the untouched model
  std::optional<Evaluation> newest_;  // at evaluated_step_
  std::int64_t evaluated_step_ = -1;
  std::int64_t saved_step_ = -1;
  std::int64_t bad_steps_ = 0;  // in a row
  TrainerHooks hooks_;
  StepTotals totals_;  // since the last log line
};

}  // namespace vlrerank
