// kernels/ops.hpp -- the fused operators, one function each.
// The tensor's device picks the implementation: ops_cpu.cpp holds the reference that defines the
// meaning. All are differentiable, save only their inputs, and compute in float32 inside.
#pragma once

#include <ATen/core/Tensor.h>

namespace vlrerank::ops {

/// RMSNorm: x / sqrt(mean(x^2) + eps) * weight over the last dimension.
///
/// @param x       [..., H]
/// @param weight  [H]
/// @return        [..., H], x's dtype
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467.
at::Tensor rms_norm(at::Tensor const& x, at::Tensor const& weight, double eps);

/// SwiGLU: silu(gate) * up.
///
/// @param gate, up  [T, I]; rows may be strided, as the two halves of one [T, 2I] are
/// @return          [T, I]
/// Source: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202, eq. 6.
at::Tensor swiglu(at::Tensor const& gate, at::Tensor const& up);

/// Rotary embedding, halves rotated: (a, b) -> (a cos - b sin, b cos + a sin) with a and b the
/// halves of the last dimension.
///
/// @param x         [T, N, D]; tokens and heads may be strided
/// @param cos, sin  [T, D / 2] float32
/// @return          [T, N, D] contiguous, x's dtype
/// Source: Su et al., "RoFormer", arXiv:2104.09864.
at::Tensor rope(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin);

/// rope(rms_norm(x, weight, eps), cos, sin) in one pass: each head normalised, then rotated.
///
/// @param weight  [D], shared by the heads
at::Tensor qk_norm_rope(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& cos,
                        at::Tensor const& sin, double eps);

}  // namespace vlrerank::ops
