// loader/plan.hpp -- from a step's number to the work of every rank, known to all without a word.
// A step is a number of rows of the epoch's order. Its loss is a weighted sum over its documents,
// and the weights are fixed here, before the rows are cut into micro-batches and spread over
// ranks: no layout changes the gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "config/settings.hpp"
#include "loader/dataset.hpp"

namespace vlrerank {

/// Documents of one row that are computed together, sharing its prefix.
struct Piece {
  std::int64_t row = 0;
  std::vector<std::int32_t> documents;  // indices of the row's pairs
  double weight = 0;                    // of each document's (pointwise) or group's (listwise) loss
  std::int64_t tokens = 0;              // that the model computes on
  std::int64_t patches = 0;
};

/// Pieces that one rank computes at once.
using MicroBatch = std::vector<Piece>;

struct StepPlan {
  std::int64_t step = 0;   // 0-based optimizer step of the run
  std::int64_t epoch = 0;  // 0-based
  std::int64_t rows = 0;
  std::vector<std::int64_t> row_numbers;
  std::int64_t documents = 0;
  double progress = 0;           // epochs done after this step
  std::vector<MicroBatch> mine;  // of the rank asked for; may be empty
};

struct PlanSettings {
  std::int64_t global_batch_size = 8;  // rows of a step
  std::int32_t window = 1;  // rows whose documents share a mean, for sum-of-means; else ignored
  std::int64_t micro_batch_tokens = 8192;
  std::int32_t max_positives = 1;
  std::int32_t max_negatives = 7;
  std::uint64_t seed = 42;
  bool shuffle = true;
  bool drop_last = false;
  bool share_prefix = true;
  bool listwise = false;
  std::int32_t min_group_size = 2;
  bool sum_of_means = false;
  std::int32_t replicas = 1;  // ranks whose means sum-of-means averages, as data parallel peers do
};

class TrainPlan {
 public:
  TrainPlan(DataSet const& data, PlanSettings const& settings);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  /// Work of `rank` in step `step`. Pure: any rank can ask for any step in any order.
  StepPlan step(std::int64_t step, int rank, int ranks) const;

 private:
  DataSet const& data_;
  PlanSettings settings_;
  std::int64_t steps_per_epoch_ = 0;
  mutable std::int64_t cached_epoch_ = -1;
  mutable std::vector<std::int64_t> order_;
};

/// All documents of rows [0, data.rows()), spread over ranks and cut to the token budget.
std::vector<MicroBatch> evaluation_plan(DataSet const& data, std::int64_t micro_batch_tokens,
                                        bool share_prefix, int rank, int ranks);

/// Tokens the model computes on for these documents of a row.
std::int64_t piece_tokens(RowIndex const& index, std::vector<std::int32_t> const& documents,
                          bool share_prefix);

}  // namespace vlrerank
