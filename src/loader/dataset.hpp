// loader/dataset.hpp -- one or more shard sets seen as one list of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shards/shard.hpp"

namespace vlrerank {

class DataSet {
 public:
  /// Sets follow each other in the order given.
  explicit DataSet(std::vector<ShardSet> sets);

  std::int64_t rows() const { return static_cast<std::int64_t>(chosen_.size()); }
  RowIndex index(std::int64_t row) const;
  /// Reads one row with its pixels, checksums verified. Thread-safe.
  StoredRow read(std::int64_t row) const;

  /// Two parts of the rows, both in their order: those kept for training, and about `ratio` of
  /// them (at least one row each) for evaluation, chosen by the seed.
  std::pair<DataSet, DataSet> split(double ratio, std::uint64_t seed) const;

 private:
  struct Place {
    std::size_t set;
    std::int64_t row;
  };
  Place place(std::int64_t row) const;

  std::shared_ptr<std::vector<ShardSet> const> sets_;
  std::vector<std::int64_t> first_;   // of each set, then the total
  std::vector<std::int64_t> chosen_;  // rows of this part
};

}  // namespace vlrerank
