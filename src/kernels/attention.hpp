// kernels/attention.hpp -- exact attention over packed runs of any length, without padding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace vlrerank {

enum class Mask { causal, full };

/// Which keys each query sees. Run r: queries [cu_q[r], cu_q[r + 1]) over the keys
/// [cu_k[r], cu_k[r + 1]). Causal masks are aligned at the end: the last query sees the last key.
struct AttentionRuns {
  std::vector<std::int32_t> cu_q;  // [R + 1], first 0, last the number of queries
  std::vector<std::int32_t> cu_k;  // [R + 1], first 0, last K
  at::Tensor cu_q_device;          // the same on the device, int32; needed there only
  at::Tensor cu_k_device;
  at::Tensor kv_index;  // [K] int64: row of k and v of each key; undefined: key = row
  std::int32_t longest_q = 0;
  std::int32_t longest_k = 0;
  Mask mask = Mask::causal;
};

/// softmax(scale q k^T + mask) v for every run and head.
///
/// @param q     [Q, Hq, D]
/// @param k, v  [N, Hkv, D]; query head h reads key head h * Hkv / Hq. Rows may be strided.
/// @return      [Q, Hq, D] contiguous, q's dtype
/// Differentiable in q, k and v. Saves them, the result and one float a query and head; scores are
/// never kept. Deterministic, for any number of threads. A key row may belong to many runs: its
/// gradients add up.
at::Tensor varlen_attention(at::Tensor const& q, at::Tensor const& k, at::Tensor const& v,
                            AttentionRuns const& runs, double scale);

namespace cpu {

/// out and log-sum-exp [Q, Hq] of float32 inputs.
std::tuple<at::Tensor, at::Tensor> attention_forward(at::Tensor const& q, at::Tensor const& k,
                                                     at::Tensor const& v, AttentionRuns const& runs,
                                                     double scale);
/// dq, dk, dv of float32 inputs.
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(
    at::Tensor const& grad, at::Tensor const& q, at::Tensor const& k, at::Tensor const& v,
    at::Tensor const& out, at::Tensor const& lse, AttentionRuns const& runs, double scale);

}  // namespace cpu
}  // namespace vlrerank
