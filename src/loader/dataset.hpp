// loader/dataset.hpp -- one or more shard sets seen as one list of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "shards/shard.hpp"

namespace vlrerank {

class DataSet {
 public:
  /// Sets follow each other in the order given.
  explicit DataSet(std::vector<ShardSet> sets);

  std::int64_t rows() const { return first_.back(); }
  RowIndex index(std::int64_t row) const;
  /// Reads one row with its pixels, checksums verified. Thread-safe.
  StoredRow read(std::int64_t row) const;
  std::vector<ShardSet> const& sets() const { return sets_; }
  /// Number of the set that holds the row.
  std::size_t set_of(std::int64_t row) const;

 private:
  std::vector<ShardSet> sets_;
  std::vector<std::int64_t> first_;  // of each set, then the total
};

}  // namespace vlrerank
