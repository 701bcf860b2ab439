// kernels/rows.cpp -- row additions; ATen's index_add_ takes a call a row on the CPU.
#include "kernels/rows.hpp"

#include <ATen/ATen.h>

#include "core/error.hpp"
#include "kernels/clones.hpp"

namespace vlrerank::ops {
namespace {

VLR_CPU_CLONES void add_row(float* to, float const* from, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) to[i] += from[i];
}

}  // namespace

void add_rows_(at::Tensor& target, at::Tensor const& index, at::Tensor const& rows) {
  if (!target.is_cpu() || target.scalar_type() != at::kFloat) {
    target.index_add_(0, index, rows.to(target.scalar_type()));
    return;
  }
  auto const from = rows.to(at::kFloat).contiguous();
  auto const places = index.contiguous();
  auto const width = target.size(1);
  VLR_REQUIRE(target.dim() == 2 && target.stride(1) == 1 && from.dim() == 2 &&
                  from.size(1) == width && places.size(0) == from.size(0),
              text("add_rows_ got target ", target.sizes(), ", rows ", rows.sizes()),
              "pass [N, H], [n] and [n, H]");
  auto const* const at = places.const_data_ptr<std::int64_t>();
  auto* const to = target.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < from.size(0); ++i) {
    VLR_REQUIRE(at[i] >= 0 && at[i] < target.size(0),
                text("row ", at[i], " of a matrix of ", target.size(0), " rows"),
                "this is a bug in the caller: pass indices inside the target");
    add_row(to + at[i] * target.stride(0), from.const_data_ptr<float>() + i * width, width);
  }
}

}  // namespace vlrerank::ops
