// train/evaluate.hpp -- scores of whole lists, over all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/dataset.hpp"
#include "train/session.hpp"

namespace vlrerank {

/// Scores of one row's documents, in the row's order.
struct RowScores {
  std::int64_t row = 0;
  std::vector<double> scores;  // logit(yes) - logit(no)
  std::vector<double> labels;
};

/// Scores every document of every row. Rows are spread over the ranks by cost; the result is whole
/// and in row order on every rank. Collective over `control`. Dropout is off.
std::vector<RowScores> score_rows(Session& session, DataSet const& data,
                                  std::int64_t micro_batch_tokens, bool share_prefix,
                                  Communicator& control);

}  // namespace vlrerank
