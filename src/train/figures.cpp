// train/figures.cpp -- metrics and loss of scored rows.
#include "train/figures.hpp"

#include <ATen/ATen.h>

namespace vlrerank {

Evaluation evaluation_of(std::vector<RowScores> const& rows, LossParameters const& loss,
                         std::vector<std::int32_t> const& at) {
  Evaluation out;
  double sum = 0;
  double count = 0;
  for (auto const& row : rows) {
    out.groups.push_back({row.scores, row.labels});
    auto const n = static_cast<std::int64_t>(row.scores.size());
    LossGroup const group{0, n, 1.0};
    auto const terms = loss_terms(at::tensor(row.labels, at::kDouble), {&group, 1}, loss, at::kCPU);
    auto const result = reranker_loss(at::tensor(row.scores, at::kDouble), terms, loss);
    sum += result.loss.item<double>();
    count += result.count.item<double>();
  }
  out.metrics = ranking::evaluate(out.groups, at);
  out.loss = count > 0 ? sum / count : 0;
  return out;
}

double figure(Evaluation const& evaluation, std::string const& name) {
  return name == "loss" ? evaluation.loss : ranking::value_of(evaluation.metrics, name);
}

}  // namespace vlrerank
