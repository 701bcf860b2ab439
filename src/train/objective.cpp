// train/objective.cpp -- pointwise and listwise losses, with their gradients in closed form.
#include "train/objective.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace vlrerank {
namespace {

LossTerms listwise_terms(at::Tensor const& labels, std::span<LossGroup const> groups,
                         LossParameters const& parameters) {
  auto const* y = labels.const_data_ptr<double>();
  std::vector<std::vector<std::int64_t>> lists;
  std::vector<double> weights;
  std::size_t longest = 1;
  for (auto const& group : groups)
    for (auto i = group.first; i < group.first + group.count; ++i) {
      if (y[i] <= 0) continue;
      std::vector<std::int64_t> list{i};
      for (auto j = group.first; j < group.first + group.count; ++j)
        if (y[j] < y[i]) list.push_back(j);
      if (static_cast<std::int32_t>(list.size()) < parameters.min_group_size) continue;
      longest = std::max(longest, list.size());
      lists.push_back(std::move(list));
      weights.push_back(group.weight * y[i]);
    }
  LossTerms terms;
  auto const rows = static_cast<std::int64_t>(lists.size());
  terms.members = at::zeros({rows, static_cast<std::int64_t>(longest)}, at::kLong);
  terms.absent = at::ones({rows, static_cast<std::int64_t>(longest)}, at::kBool);
  terms.weights = at::zeros({rows}, at::kDouble);
  for (std::size_t g = 0; g < lists.size(); ++g) {
    auto const row = static_cast<std::int64_t>(g);
    terms.weights.mutable_data_ptr<double>()[g] = weights[g];
    for (std::size_t m = 0; m < lists[g].size(); ++m) {
      auto const at = row * static_cast<std::int64_t>(longest) + static_cast<std::int64_t>(m);
      terms.members.mutable_data_ptr<std::int64_t>()[at] = lists[g][m];
      terms.absent.mutable_data_ptr<bool>()[at] = false;
    }
  }
  return terms;
}

LossResult pointwise(at::Tensor const& s, LossTerms const& terms, double pos_weight) {
  auto const& y = terms.labels;
  auto const yes = pos_weight * y;
  auto const no = 1 - y;
  auto const loss = yes * at::softplus(-s, 1, 50) + no * at::softplus(s, 1, 50);
  auto const slope = no * at::sigmoid(s) - yes * at::sigmoid(-s);
  LossResult out;
  out.loss = (terms.weights * loss).sum();
  out.gradient = (terms.weights * slope).to(at::kFloat);
  out.correct = ((s > 0) == (y > 0.5)).sum().to(at::kDouble);
  out.count = at::full({}, static_cast<double>(y.numel()), s.options());
  return out;
}

LossResult listwise(at::Tensor const& s, LossTerms const& terms, double temperature) {
  LossResult out;
  auto gradient = at::zeros_like(s);
  out.count = at::full({}, static_cast<double>(terms.members.size(0)), s.options());
  if (terms.members.size(0) == 0) {
    out.loss = at::zeros({}, s.options());
    out.correct = at::zeros({}, s.options());
    out.gradient = gradient.to(at::kFloat);
    return out;
  }
  auto const list = s.index_select(0, terms.members.view({-1}))
                        .view(terms.members.sizes())
                        .masked_fill(terms.absent, -HUGE_VAL);  // [G, M]
  auto const log_share = at::log_softmax(list / temperature, -1);
  out.loss = -(terms.weights * log_share.select(1, 0)).sum();
  auto slope = log_share.exp();
  slope.select(1, 0).sub_(1);
  slope.mul_((terms.weights / temperature).unsqueeze(1));
  gradient.index_add_(0, terms.members.view({-1}), slope.view({-1}));
  auto const rivals = list.slice(1, 1);
  out.correct = rivals.size(1) == 0 ? out.count.clone()
                                    : (list.select(1, 0) > rivals.amax(1)).sum().to(at::kDouble);
  out.gradient = gradient.to(at::kFloat);
  return out;
}

}  // namespace

LossParameters loss_parameters(LossSettings const& settings) {
  LossParameters out;
  out.kind = settings.kind == "listwise" ? LossKind::listwise : LossKind::pointwise;
  out.temperature = settings.temperature;
  out.min_group_size = settings.min_group_size;
  out.pos_weight = settings.pos_weight;
  return out;
}

LossTerms loss_terms(at::Tensor const& labels, std::span<LossGroup const> groups,
                     LossParameters const& parameters, at::Device device) {
  auto const y = labels.to(at::kDouble).contiguous();
  LossTerms terms;
  if (parameters.kind == LossKind::listwise) {
    terms = listwise_terms(y, groups, parameters);
    terms.members = terms.members.to(device, /*non_blocking=*/true);
    terms.absent = terms.absent.to(device, /*non_blocking=*/true);
  } else {
    terms.weights = at::zeros({y.numel()}, at::kDouble);
    for (auto const& group : groups)
      terms.weights.narrow(0, group.first, group.count).fill_(group.weight);
  }
  terms.weights = terms.weights.to(device, /*non_blocking=*/true);
  terms.labels = y.to(device, /*non_blocking=*/true);
  return terms;
}

LossResult reranker_loss(at::Tensor const& scores, LossTerms const& terms,
                         LossParameters const& parameters) {
  auto const s = scores.to(at::kDouble);
  return parameters.kind == LossKind::listwise ? listwise(s, terms, parameters.temperature)
                                               : pointwise(s, terms, parameters.pos_weight);
}

}  // namespace vlrerank
