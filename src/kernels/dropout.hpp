// kernels/dropout.hpp -- dropout whose mask is a function of what a value is, not of where it lies.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace vlrerank::ops {

/// Four random words of one counter. Source: Salmon et al., "Parallel Random Numbers: As Easy as
/// 1, 2, 3", SC'11: Philox4x32 with 10 rounds.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// Which mask of a training run this is.
struct DropoutSite {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t stream = 0;  ///< of the layer and module
  double p = 0;             ///< share of values dropped, 0 <= p < 1; rounded to 1 / 65536
};

/// x with a share p of its values set to 0 and the others divided by 1 - p.
///
/// @param x          [T, F]
/// @param token_key  [T] int64: names the token; equal keys get equal masks
/// The mask of feature f comes from 16 bits of Philox at counter (f / 64 * 8 + f % 8, stream,
/// token_key) under a key made of seed and step: number h = f / 8 % 8 takes the low half of word h
/// for h < 4, the high half of word h - 4 else. So it is the same for any packing, order or number
/// of ranks, and the same again when a layer is recomputed. Differentiable in x; saves the token
/// keys only.
at::Tensor counter_dropout(at::Tensor const& x, at::Tensor const& token_key,
                           DropoutSite const& site);

}  // namespace vlrerank::ops
