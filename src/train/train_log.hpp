// train/train_log.hpp -- what a run tells: progress, metrics.jsonl, TensorBoard. Root rank only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/settings.hpp"
#include "train/figures.hpp"

namespace vlrerank {

/// Sums over the steps since the last log line, of all ranks.
struct StepTotals {
  std::int64_t steps = 0;
  double loss = 0;  // sum of the steps' losses
  double correct = 0;
  double count = 0;  // documents or groups that `correct` is a part of
  double pairs = 0;
  double tokens = 0;     // that the model computed on
  double data_wait = 0;  // seconds that the root waited for data
  double seconds = 0;
  double grad_norm = 0;      // of the last step, before clipping
  double learning_rate = 0;  // of the last step
};

/// Adds a step; rates and norm are those of the newest.
void add(StepTotals& totals, StepTotals const& step);

class TrainLog {
 public:
  /// Writes nothing when `active` is false: the other ranks'.
  /// @param first_step  of a resumed run: later rows of metrics.jsonl are dropped
  TrainLog(bool active, std::filesystem::path const& directory, Settings const& settings,
           std::int64_t first_step);
  ~TrainLog();

  /// A line for people, on standard output.
  void line(std::string const& text);
  void step(std::int64_t step, std::int64_t total_steps, double epoch, StepTotals const& totals);
  /// @param base  the untouched model's evaluation; nullptr when this is it, or none was made
  void evaluation(std::int64_t step, std::int64_t total_steps, double epoch, Evaluation const& now,
                  Evaluation const* base);
  /// A text for TensorBoard, such as the configuration.
  void note(std::string const& tag, std::string const& markdown);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vlrerank
