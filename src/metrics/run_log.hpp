// metrics/run_log.hpp -- metrics.jsonl: one JSON object a line, with ms-swift's keys.
// Every row has "step". A crash leaves at most one partial last line, which reopening removes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "metrics/ranking.hpp"

namespace vlrerank {

using LogValue = std::variant<double, std::int64_t, std::string>;
/// Keys in the order in which they are written.
using LogRow = std::vector<std::pair<std::string, LogValue>>;

/// The file, open for appending. Errors: exit 74.
class RunLog {
 public:
  /// Begins an empty file.
  static RunLog create(std::filesystem::path const& path);
  /// Goes on after `step`: rows of later steps, a partial last line and whatever is no row are
  /// removed, in one rename.
  /// A missing file begins empty.
  static RunLog resume(std::filesystem::path const& path, std::int64_t step);

  RunLog(RunLog&& other) noexcept;
  RunLog& operator=(RunLog&&) = delete;
  ~RunLog();

  /// Appends one line by one write. A number that is not finite is written as null.
  void write(LogRow const& row);

 private:
  explicit RunLog(std::filesystem::path path);
  std::filesystem::path path_;
  int fd_ = -1;
};

/// What the trainer knows between two log lines; rates over that time, over all ranks.
struct TrainingReport {
  std::int64_t step = 0;
  std::int64_t max_steps = 0;
  double epoch = 0;
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
  double learning_rate = 0;
  double acc = 0;
  double elapsed_seconds = 0;
  double steps_done = 0;  ///< optimizer steps of this process: the time left follows from them
  double memory_gib = 0;  ///< peak of the rank that needs most
  double pairs_per_second = 0;
  double tokens_per_second = 0;
  LogRow more;  ///< further keys, written last
};

/// loss, grad_norm, learning_rate, acc, epoch, "global_step/max_steps", elapsed_time,
/// remaining_time, "memory(GiB)", "train_speed(s/it)" as ms-swift; then pairs/s, tokens/s, step.
LogRow training_row(TrainingReport const& report);

struct EvaluationReport {
  std::int64_t step = 0;
  std::int64_t max_steps = 0;
  double epoch = 0;
  std::optional<double> loss;
  double seconds = 0;
  LogRow more;
};

/// eval_loss, eval_mrr, eval_ndcg, eval_acc, ..., eval_runtime and eval_samples_per_second
/// (groups).
LogRow evaluation_row(EvaluationReport const& report, ranking::Metrics const& metrics);

/// Seconds left by the mean speed so far; empty before the first step.
std::optional<double> remaining_seconds(TrainingReport const& report);

/// "31s", "51m 26s", "3h 0m 5s", "1d 2h 0m 0s".
std::string duration_text(double seconds);

/// The row as one line of JSON, without its end.
std::string to_json_line(LogRow const& row);

}  // namespace vlrerank
