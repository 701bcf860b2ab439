// model/linear.hpp -- a linear layer, alone or with a low-rank adapter beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace vlrerank {

/// y += scale * B A dropout(x). Source: Hu et al., "LoRA", arXiv:2106.09685; layout as in PEFT.
struct LoraPair {
  at::Tensor a;  // [r, in]
  at::Tensor b;  // [out, r], a's dtype
  double scale = 1;
  double dropout = 0;
  std::int64_t module_id = 0;  // stream of the dropout mask: one number a linear
};

struct Linear {
  std::string name;   // the module's name in the checkpoint, without ".weight"
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]; undefined: none
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::optional<LoraPair> lora;
};

/// What the masks of one pass depend on besides the layer.
struct DropoutState {
  bool active = false;  // training with adapters that drop
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  at::Tensor token_key;  // [T] int64
};

/// W x + bias (+ adapter). The adapter computes in its own dtype, as PEFT's does.
///
/// @param x  [T, in]
/// @return   [T, out], x's dtype
at::Tensor apply(Linear const& linear, at::Tensor const& x, DropoutState const& dropout);
/// residual + apply(linear, x, dropout).
at::Tensor add_apply(at::Tensor const& residual, Linear const& linear, at::Tensor const& x,
                     DropoutState const& dropout);

/// Whether a backward pass has anything to fill in here.
bool trains(Linear const& linear);

}  // namespace vlrerank
