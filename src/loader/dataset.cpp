// loader/dataset.cpp -- finds the set that holds a row.
#include "loader/dataset.hpp"

#include <algorithm>

namespace vlrerank {

DataSet::DataSet(std::vector<ShardSet> sets) : sets_(std::move(sets)), first_{0} {
  for (auto const& set : sets_) first_.push_back(first_.back() + set.rows());
}

std::size_t DataSet::set_of(std::int64_t row) const {
  auto const after = std::upper_bound(first_.begin(), first_.end(), row);
  return static_cast<std::size_t>(after - first_.begin()) - 1;
}

RowIndex DataSet::index(std::int64_t row) const {
  auto const set = set_of(row);
  return sets_[set].index(row - first_[set]);
}

StoredRow DataSet::read(std::int64_t row) const {
  auto const set = set_of(row);
  return sets_[set].read(row - first_[set]);
}

}  // namespace vlrerank
