// train/figures.hpp -- what an evaluation says: ranking metrics and the loss over whole lists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/ranking.hpp"
#include "train/evaluate.hpp"
#include "train/objective.hpp"

namespace vlrerank {

struct Evaluation {
  std::vector<ranking::RankedGroup> groups;  // one a row, in row order
  ranking::Metrics metrics;
  double loss = 0;     // mean over documents (pointwise) or softmax groups (listwise)
  double seconds = 0;  // that scoring took
};

/// @param at  cut-offs of ndcg@k and recall@k
Evaluation evaluation_of(std::vector<RowScores> const& rows, LossParameters const& loss,
                         std::vector<std::int32_t> const& at);

/// A figure by the name that --metric-for-best-model uses, "loss" among them. Throws Error (exit 2)
/// naming those that there are.
double figure(Evaluation const& evaluation, std::string const& name);

}  // namespace vlrerank
