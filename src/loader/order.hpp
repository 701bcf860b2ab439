// loader/order.hpp -- which rows an epoch visits in which order, and which documents of a row.
// Both are functions of (seed, epoch, row) alone: the same for any ranks, workers and restarts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vlrerank {

/// A stream of random 64-bit numbers that is a function of its keys (SplitMix64 over their hash).
class KeyedRandom {
 public:
  KeyedRandom(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0);
  std::uint64_t next();
  /// Uniform in [0, bound), without modulo bias (Lemire, arXiv:1805.10941).
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

/// Mixes two 64-bit values into one: the hash behind KeyedRandom and the dropout keys.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

enum class Shuffle { no, yes };

/// Row numbers 0..rows-1 in the order of the epoch (Fisher-Yates).
std::vector<std::int64_t> epoch_order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch,
                                      Shuffle shuffle);

/// At most `max_positives` of the documents labelled 0.5 or more and `max_negatives` of the
/// others, as ascending indices into `labels`, positives first.
std::vector<std::int32_t> choose_documents(std::span<float const> labels,
                                           std::int32_t max_positives, std::int32_t max_negatives,
                                           std::uint64_t seed, std::int64_t epoch,
                                           std::int64_t row);

}  // namespace vlrerank
