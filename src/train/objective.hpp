// train/objective.hpp -- what the reranker is trained to minimise, and its gradient.
// The terms of a micro-batch are laid out on the host before it is computed; the loss and its
// gradient then need no host: they are tensors on the scores' device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "config/settings.hpp"

namespace vlrerank {

enum class LossKind { pointwise, listwise };

struct LossParameters {
  LossKind kind = LossKind::pointwise;
  double temperature = 1;
  std::int32_t min_group_size = 2;
  double pos_weight = 1;
};
LossParameters loss_parameters(LossSettings const& settings);

/// Documents [first, first + count) of a batch that belong to one row, and the weight of each of
/// their losses in the step's sum.
struct LossGroup {
  std::int64_t first = 0;
  std::int64_t count = 0;
  double weight = 0;
};

/// S documents; G softmax groups of at most M members, listwise only.
struct LossTerms {
  at::Tensor labels;   // [S] float64
  at::Tensor weights;  // [S] float64, or [G]
  at::Tensor members;  // [G, M] int64: documents, the positive first; padded with 0
  at::Tensor absent;   // [G, M] bool: padding
};
/// @param labels  relevance in [0, 1] of each document, on the CPU
LossTerms loss_terms(at::Tensor const& labels, std::span<LossGroup const> groups,
                     LossParameters const& parameters, at::Device device);

/// All float64 tensors on the scores' device.
struct LossResult {
  at::Tensor loss;      // scalar: weighted sum
  at::Tensor gradient;  // [S] float32, by each score
  at::Tensor correct;   // scalar: (score > 0) == (label > 0.5); listwise: positive ranked first
  at::Tensor count;     // scalar: what `correct` is a part of
};

/// Pointwise: sum over documents of
///   weight * (pos_weight * y * softplus(-s) + (1 - y) * softplus(s)),
/// which is BCE with logits for labels in [0, 1].
/// Listwise: for each document i with y_i > 0, the documents of its row with a smaller label are
/// its negatives; where they are at least min_group_size with it, weight * y_i * cross entropy of
/// softmax(s / temperature) over i and its negatives with target i. Binary labels and one positive
/// give the usual formula.
LossResult reranker_loss(at::Tensor const& scores, LossTerms const& terms,
                         LossParameters const& parameters);

}  // namespace vlrerank
