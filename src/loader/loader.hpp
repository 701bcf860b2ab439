// loader/loader.hpp -- reads and packs the next micro-batches while the model computes.
// One background thread, a queue of two: memory is bounded whatever the size of the data set.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "loader/pack.hpp"
#include "loader/plan.hpp"

namespace vlrerank {

/// A micro-batch ready to compute, with the plan's pieces in the order of its documents.
struct LoadedBatch {
  MicroBatch pieces;
  PackedBatch batch;
};

/// Hands out the micro-batches of a list that `next_list` yields, list after list.
class Loader {
 public:
  /// @param micro_batches  called on the background thread with 0, 1, 2 ...: the micro-batches of
  ///                       that list (an optimizer step, or a whole evaluation); nullopt ends it
  Loader(DataSet const& data, PromptIds const& prompt_ids, bool share_prefix,
         std::function<std::optional<std::vector<MicroBatch>>(std::int64_t)> micro_batches);
  ~Loader();
  Loader(Loader const&) = delete;
  Loader& operator=(Loader const&) = delete;

  /// The next micro-batch, in order; waits for it. Rethrows what the thread met, e.g. a flipped
  /// bit in a shard. Throws Error when there is none left.
  LoadedBatch next();
  /// Seconds that next() has waited since the last call: the data wait of a step.
  double take_wait();

 private:
  void work();

  DataSet const& data_;
  PromptIds const& prompt_ids_;
  bool share_prefix_;
  std::function<std::optional<std::vector<MicroBatch>>(std::int64_t)> micro_batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LoadedBatch> ready_;
  std::exception_ptr failure_;
  bool ended_ = false;
  bool stop_ = false;
  double wait_ = 0;
  std::thread thread_;
};

}  // namespace vlrerank
