// model/support.hpp -- the tiny reference model and its answers, for the tests of this room.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>

#include "model/reranker.hpp"
#include "support/golden_batch.hpp"
#include "support/test_data.hpp"

namespace vlrerank {

inline constexpr std::int64_t yes_id = 9693;
inline constexpr std::int64_t no_id = 2152;

inline std::unique_ptr<Reranker> tiny_model() {
  auto const directory = test_data("reference/tiny-model");
  auto model = std::make_unique<Reranker>(ModelConfig::load(directory));
  model->load(TensorFiles::open(directory), at::kFloat, at::kCPU);
  model->set_answer_ids(yes_id, no_id);
  return model;
}

/// All parameters of the given parts become leaves with a zero gradient.
inline void make_trainable(Reranker& model, std::vector<ModelPart> const& parts) {
  for (auto const& p : model.parameters()) {
    if (std::find(parts.begin(), parts.end(), p.part) == parts.end()) continue;
    auto leaf = p.slot->detach().clone();
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = at::zeros_like(leaf);
    *p.slot = leaf;
  }
}

/// Gives every text linear the adapter of the PEFT file.
inline void attach_adapter(Reranker& model, TensorFiles const& file, double scale, double dropout) {
  std::int64_t id = 0;
  for (auto* linear : model.linears()) {
    auto const name = "base_model.model." + linear->name;
    ++id;
    if (!file.contains(name + ".lora_A.weight")) continue;
    LoraPair pair;
    pair.a = file.get(name + ".lora_A.weight").clone().set_requires_grad(true);
    pair.b = file.get(name + ".lora_B.weight").clone().set_requires_grad(true);
    pair.scale = scale;
    pair.dropout = dropout;
    pair.module_id = id;
    linear->lora = pair;
  }
}

/// Every gradient by name: parameters and adapters that require one.
inline std::map<std::string, at::Tensor> gradients(Reranker const& model) {
  std::map<std::string, at::Tensor> all;
  for (auto const& p : model.parameters())
    if (p.slot->requires_grad())
      all[p.name] = p.slot->grad().defined() ? p.slot->grad().clone() : at::zeros_like(*p.slot);
  for (auto const* linear : model.linears()) {
    if (!linear->lora || !linear->lora->a.requires_grad()) continue;
    for (auto const& [end, leaf] : {std::pair<char const*, at::Tensor>{"A", linear->lora->a},
                                    std::pair<char const*, at::Tensor>{"B", linear->lora->b}})
      all[linear->name + ".lora_" + end] =
          leaf.grad().defined() ? leaf.grad().clone() : at::zeros_like(leaf);
  }
  return all;
}

inline void clear_gradients(Reranker const& model) {
  at::NoGradGuard const off;
  for (auto const& p : model.parameters())
    if (p.slot->requires_grad() && p.slot->grad().defined()) p.slot->mutable_grad().zero_();
  for (auto const* linear : model.linears())
    if (linear->lora)
      for (auto* leaf : {&linear->lora->a, &linear->lora->b})
        if (leaf->grad().defined()) leaf->mutable_grad().zero_();
}

/// Mean BCE with logits: its gradient by the scores.
inline at::Tensor bce_gradient(at::Tensor const& scores, at::Tensor const& labels) {
  return (scores.sigmoid() - labels) / static_cast<double>(scores.numel());
}

inline double max_difference(at::Tensor const& a, at::Tensor const& b) {
  return a.numel() == 0 ? 0.0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// |a - b| / |b|, or |a - b| when b is tiny beside `floor`.
inline double relative_l2(at::Tensor const& a, at::Tensor const& b, double floor = 0) {
  auto const distance = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return distance / std::max(b.to(at::kDouble).norm().item<double>(), std::max(floor, 1e-30));
}

}  // namespace vlrerank
