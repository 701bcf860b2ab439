// loader/dataset.cpp -- finds the set that holds a row, and splits off an evaluation part.
#include "loader/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "loader/order.hpp"

namespace vlrerank {

DataSet::DataSet(std::vector<ShardSet> sets)
    : sets_(std::make_shared<std::vector<ShardSet> const>(std::move(sets))), first_{0} {
  for (auto const& set : *sets_) first_.push_back(first_.back() + set.rows());
  chosen_.resize(static_cast<std::size_t>(first_.back()));
  std::iota(chosen_.begin(), chosen_.end(), std::int64_t{0});
}

DataSet::Place DataSet::place(std::int64_t row) const {
  auto const global = chosen_.at(static_cast<std::size_t>(row));
  auto const after = std::upper_bound(first_.begin(), first_.end(), global);
  auto const set = static_cast<std::size_t>(after - first_.begin()) - 1;
  return {set, global - first_[set]};
}

RowIndex DataSet::index(std::int64_t row) const {
  auto const at = place(row);
  return (*sets_)[at.set].index(at.row);
}

StoredRow DataSet::read(std::int64_t row) const {
  auto const at = place(row);
  return (*sets_)[at.set].read(at.row);
}

std::pair<DataSet, DataSet> DataSet::split(double ratio, std::uint64_t seed) const {
  VLR_INPUT(rows() >= 2, text("--split-dataset-ratio ", ratio, " of ", rows(), " rows"),
            "give a --val-dataset instead");
  auto const wanted = static_cast<std::int64_t>(std::llround(ratio * static_cast<double>(rows())));
  auto const held = std::clamp<std::int64_t>(wanted, 1, rows() - 1);
  auto const order = epoch_order(rows(), mix(seed, 3), 0, Shuffle::yes);
  std::vector<bool> is_held(static_cast<std::size_t>(rows()), false);
  for (std::int64_t i = 0; i < held; ++i)
    is_held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  std::pair<DataSet, DataSet> parts(*this, *this);
  parts.first.chosen_.clear();
  parts.second.chosen_.clear();
  for (std::size_t i = 0; i < chosen_.size(); ++i)
    (is_held[i] ? parts.second : parts.first).chosen_.push_back(chosen_[i]);
  return parts;
}

}  // namespace vlrerank
