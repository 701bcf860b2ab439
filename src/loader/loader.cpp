// loader/loader.cpp -- the prefetching thread.
#include "loader/loader.hpp"

#include <chrono>

#include "core/error.hpp"

namespace vlrerank {
namespace {

constexpr std::size_t queue_length = 2;

}  // namespace

Loader::Loader(DataSet const& data, PromptIds const& prompt_ids, bool share_prefix,
               std::function<std::optional<std::vector<MicroBatch>>(std::int64_t)> micro_batches)
    : data_(data),
      prompt_ids_(prompt_ids),
      share_prefix_(share_prefix),
      micro_batches_(std::move(micro_batches)),
      thread_([this] { work(); }) {}

Loader::~Loader() {
  {
    std::lock_guard const lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::work() {
  try {
    for (std::int64_t number = 0;; ++number) {
      auto list = micro_batches_(number);
      if (!list) break;
      for (auto& pieces : *list) {
        std::vector<StoredRow> rows;
        rows.reserve(pieces.size());
        for (auto const& piece : pieces) rows.push_back(data_.read(piece.row));
        LoadedBatch loaded{std::move(pieces), {}};
        loaded.batch = pack(loaded.pieces, rows, prompt_ids_, share_prefix_);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || ready_.size() < queue_length; });
        if (stop_) return;
        ready_.push_back(std::move(loaded));
        changed_.notify_all();
      }
      std::lock_guard const lock(mutex_);
      if (stop_) return;
    }
  } catch (...) {
    std::lock_guard const lock(mutex_);
    failure_ = std::current_exception();
  }
  std::lock_guard const lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

LoadedBatch Loader::next() {
  auto const begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
  wait_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (ready_.empty() && failure_) std::rethrow_exception(failure_);
  VLR_REQUIRE(!ready_.empty(), "the loader was asked for more micro-batches than planned",
              "this is a bug in the caller");
  auto loaded = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return loaded;
}

double Loader::take_wait() {
  std::lock_guard const lock(mutex_);
  return std::exchange(wait_, 0.0);
}

}  // namespace vlrerank
