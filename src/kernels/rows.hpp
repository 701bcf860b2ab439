// kernels/rows.hpp -- adding rows of one matrix to chosen rows of another, in place.
#pragma once

#include <ATen/core/Tensor.h>

namespace vlrerank::ops {

/// target[index[i]] += rows[i]. An index may repeat; the additions then happen in order of i, so
/// the result does not depend on the number of threads (on the CPU). Not differentiable.
///
/// @param target  [N, H], rows contiguous
/// @param index   [n] int64, each in [0, N)
/// @param rows    [n, H]
void add_rows_(at::Tensor& target, at::Tensor const& index, at::Tensor const& rows);

}  // namespace vlrerank::ops
