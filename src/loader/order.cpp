// loader/order.cpp -- the epoch's permutation and the choice of negatives.
#include "loader/order.hpp"

#include <algorithm>
#include <numeric>

namespace vlrerank {
namespace {

/// Moves `count` random elements of `indices` to its front and sorts them.
void keep_some(std::vector<std::int32_t>& indices, std::int32_t count, KeyedRandom& random) {
  auto const size = indices.size();
  auto const kept = static_cast<std::size_t>(std::max(0, count));
  if (kept >= size) return;
  for (std::size_t i = 0; i < kept; ++i) std::swap(indices[i], indices[i + random.below(size - i)]);
  indices.resize(kept);
  std::sort(indices.begin(), indices.end());
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch,
                                      Shuffle shuffle) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (shuffle == Shuffle::no) return order;
  KeyedRandom random(mix(seed, 1), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::vector<std::int32_t> choose_documents(std::span<float const> labels,
                                           std::int32_t max_positives, std::int32_t max_negatives,
                                           std::uint64_t seed, std::int64_t epoch,
                                           std::int64_t row) {
  std::vector<std::int32_t> positives;
  std::vector<std::int32_t> negatives;
  for (std::size_t i = 0; i < labels.size(); ++i)
    (labels[i] >= 0.5f ? positives : negatives).push_back(static_cast<std::int32_t>(i));
  KeyedRandom random(mix(seed, 2), static_cast<std::uint64_t>(epoch),
                     static_cast<std::uint64_t>(row));
  keep_some(positives, max_positives, random);
  keep_some(negatives, max_negatives, random);
  positives.insert(positives.end(), negatives.begin(), negatives.end());
  return positives;
}

}  // namespace vlrerank
