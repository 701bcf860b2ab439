// loader/order.hpp -- which rows an epoch visits in which order, and which documents of a row.
// Both are functions of (seed, epoch, row) alone: the same for any ranks, workers and restarts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"

namespace vlrerank {

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
