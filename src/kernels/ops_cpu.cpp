// kernels/ops_cpu.cpp -- the reference: what each operator means, as plain loops over rows.
// It is the fallback on machines without a GPU and the yardstick of the CUDA tests. Other dtypes
// than float32 are widened first and rounded once at the end.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/clones.hpp"
#include "kernels/exp.hpp"

namespace vlrerank::ops {
namespace {

constexpr std::int64_t values_per_task = 32768;

/// Rows so that one task has enough to do.
std::int64_t grain(std::int64_t width) {
  return std::max<std::int64_t>(1, values_per_task / std::max<std::int64_t>(1, width));
}

at::Tensor plain(at::Tensor const& x) {
  return x.to(at::kFloat).contiguous();
}
/// Float32 rows whose elements lie together; rows themselves may be apart.
at::Tensor rows(at::Tensor const& x) {
  auto const wide = x.to(at::kFloat);
  return wide.stride(-1) == 1 || wide.size(-1) <= 1 ? wide : wide.contiguous();
}

VLR_CPU_CLONES void norm_rows(float* out, float const* x, float const* weight, std::int64_t count,
                              std::int64_t width, float eps) {
  for (std::int64_t r = 0; r < count; ++r, x += width, out += width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
    float const scale = 1 / std::sqrt(sum / static_cast<float>(width) + eps);
    for (std::int64_t i = 0; i < width; ++i) out[i] = x[i] * scale * weight[i];
  }
}

/// With n = x / rms: dx = (g w - n mean(g w n)) / rms; dweight += g n.
VLR_CPU_CLONES void norm_rows_backward(float* dx, float* dweight, float const* grad, float const* x,
                                       float const* weight, std::int64_t count, std::int64_t width,
                                       float eps) {
  for (std::int64_t r = 0; r < count; ++r, x += width, dx += width, grad += width) {
    float sum = 0;
    float dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t i = 0; i < width; ++i) {
      sum += x[i] * x[i];
      dot += grad[i] * weight[i] * x[i];
    }
    float const scale = 1 / std::sqrt(sum / static_cast<float>(width) + eps);
    float const pull = dot * scale * scale * scale / static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      dx[i] = grad[i] * weight[i] * scale - x[i] * pull;
      dweight[i] += grad[i] * x[i] * scale;
    }
  }
}

VLR_CPU_CLONES void swiglu_row(float* out, float const* gate, float const* up, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) out[i] = gate[i] * up[i] / (1 + fast_exp(-gate[i]));
}

VLR_CPU_CLONES void swiglu_row_backward(float* dgate, float* dup, float const* grad,
                                        float const* gate, float const* up, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    float const sigmoid = 1 / (1 + fast_exp(-gate[i]));
    dgate[i] = grad[i] * up[i] * sigmoid * (1 + gate[i] * (1 - sigmoid));
    dup[i] = grad[i] * gate[i] * sigmoid;
  }
}

/// One token's heads: each normalised (when weight is given), then rotated.
VLR_CPU_CLONES void rotate_heads(float* out, float const* x, std::int64_t head_stride,
                                 float const* weight, float const* cos, float const* sin,
                                 std::int64_t heads, std::int64_t width, float eps) {
  auto const half = width / 2;
  for (std::int64_t h = 0; h < heads; ++h, x += head_stride, out += width) {
    if (weight == nullptr) {
      for (std::int64_t i = 0; i < half; ++i) {
        out[i] = x[i] * cos[i] - x[half + i] * sin[i];
        out[half + i] = x[half + i] * cos[i] + x[i] * sin[i];
      }
      continue;
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
    float const scale = 1 / std::sqrt(sum / static_cast<float>(width) + eps);
    for (std::int64_t i = 0; i < half; ++i) {
      float const a = x[i] * scale * weight[i];
      float const b = x[half + i] * scale * weight[half + i];
      out[i] = a * cos[i] - b * sin[i];
      out[half + i] = b * cos[i] + a * sin[i];
    }
  }
}

/// Unrotates the gradient, then applies the norm's backward rule, head by head.
VLR_CPU_CLONES void rotate_heads_backward(float* dx, float* dweight, float* unrotated,
                                          float const* grad, float const* x,
                                          std::int64_t head_stride, float const* weight,
                                          float const* cos, float const* sin, std::int64_t heads,
                                          std::int64_t width, float eps) {
  auto const half = width / 2;
  for (std::int64_t h = 0; h < heads; ++h, x += head_stride, dx += width, grad += width) {
    for (std::int64_t i = 0; i < half; ++i) {
      unrotated[i] = grad[i] * cos[i] + grad[half + i] * sin[i];
      unrotated[half + i] = grad[half + i] * cos[i] - grad[i] * sin[i];
    }
    float sum = 0;
    float dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t i = 0; i < width; ++i) {
      sum += x[i] * x[i];
      dot += unrotated[i] * weight[i] * x[i];
    }
    float const scale = 1 / std::sqrt(sum / static_cast<float>(width) + eps);
    float const pull = dot * scale * scale * scale / static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      dx[i] = unrotated[i] * weight[i] * scale - x[i] * pull;
      dweight[i] += unrotated[i] * x[i] * scale;
    }
  }
}

/// Sums over rows are made in fixed blocks, so that they do not depend on the number of threads.
template <class Block>
at::Tensor sum_blocks(std::int64_t count, std::int64_t block, std::int64_t width,
                      Block const& run) {
  auto const blocks = std::max<std::int64_t>(1, (count + block - 1) / block);
  auto parts = at::zeros({blocks, width});
  auto* const sums = parts.mutable_data_ptr<float>();
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto b = begin; b < end; ++b)
      run(b * block, std::min(count, (b + 1) * block), sums + b * width);
  });
  return parts.sum(0);
}

at::Tensor rms_norm_cpu(at::Tensor const& x, at::Tensor const& weight, double eps) {
  auto const in = plain(x);
  auto const w = plain(weight);
  auto const width = in.size(-1);
  auto const count = width == 0 ? 0 : in.numel() / width;
  auto out = at::empty_like(in);
  auto const *from = in.const_data_ptr<float>(), *scale = w.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<float>();
  at::parallel_for(0, count, grain(width), [&](std::int64_t begin, std::int64_t end) {
    norm_rows(to + begin * width, from + begin * width, scale, end - begin, width,
              static_cast<float>(eps));
  });
  return out.to(x.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward_cpu(at::Tensor const& grad,
                                                         at::Tensor const& x,
                                                         at::Tensor const& weight, double eps) {
  auto const in = plain(x), w = plain(weight), g = plain(grad);
  auto const width = in.size(-1);
  auto const count = width == 0 ? 0 : in.numel() / width;
  auto dx = at::empty_like(in);
  auto* const to = dx.mutable_data_ptr<float>();
  auto const *from = in.const_data_ptr<float>(), *scale = w.const_data_ptr<float>(),
             *down = g.const_data_ptr<float>();
  auto dweight = sum_blocks(
      count, grain(width), width, [&](std::int64_t begin, std::int64_t end, float* sums) {
        norm_rows_backward(to + begin * width, sums, down + begin * width, from + begin * width,
                           scale, end - begin, width, static_cast<float>(eps));
      });
  return {dx.to(x.scalar_type()), dweight.to(weight.scalar_type())};
}

at::Tensor swiglu_cpu(at::Tensor const& gate, at::Tensor const& up) {
  auto const g = rows(gate), u = rows(up);
  auto const width = g.size(1);
  auto out = at::empty({g.size(0), width}, g.options());
  auto* const to = out.mutable_data_ptr<float>();
  at::parallel_for(0, g.size(0), grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r)
      swiglu_row(to + r * width, g.const_data_ptr<float>() + r * g.stride(0),
                 u.const_data_ptr<float>() + r * u.stride(0), width);
  });
  return out.to(gate.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_cpu(at::Tensor const& grad,
                                                       at::Tensor const& gate,
                                                       at::Tensor const& up) {
  auto const g = rows(gate), u = rows(up), d = plain(grad);
  auto const width = g.size(1);
  auto dgate = at::empty_like(d), dup = at::empty_like(d);
  auto *const to_gate = dgate.mutable_data_ptr<float>(), *const to_up =
                                                             dup.mutable_data_ptr<float>();
  at::parallel_for(0, g.size(0), grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r)
      swiglu_row_backward(to_gate + r * width, to_up + r * width,
                          d.const_data_ptr<float>() + r * width,
                          g.const_data_ptr<float>() + r * g.stride(0),
                          u.const_data_ptr<float>() + r * u.stride(0), width);
  });
  return {dgate.to(gate.scalar_type()), dup.to(up.scalar_type())};
}

/// The common part of rope and qk_norm_rope; weight undefined means no norm.
at::Tensor rotate(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& cos,
                  at::Tensor const& sin, double eps) {
  auto const in = rows(x), c = plain(cos), s = plain(sin);
  auto const w = weight.defined() ? plain(weight) : weight;
  auto const tokens = in.size(0), heads = in.size(1), width = in.size(2);
  auto out = at::empty({tokens, heads, width}, in.options());
  auto* const to = out.mutable_data_ptr<float>();
  auto const* const scale = w.defined() ? w.const_data_ptr<float>() : nullptr;
  at::parallel_for(0, tokens, grain(heads * width), [&](std::int64_t begin, std::int64_t end) {
    for (auto t = begin; t < end; ++t)
      rotate_heads(to + t * heads * width, in.const_data_ptr<float>() + t * in.stride(0),
                   in.stride(1), scale, c.const_data_ptr<float>() + t * width / 2,
                   s.const_data_ptr<float>() + t * width / 2, heads, width,
                   static_cast<float>(eps));
  });
  return out.to(x.scalar_type());
}

at::Tensor rope_cpu(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin) {
  return rotate(x, {}, cos, sin, 0);
}

at::Tensor qk_norm_rope_cpu(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& cos,
                            at::Tensor const& sin, double eps) {
  return rotate(x, weight, cos, sin, eps);
}

std::tuple<at::Tensor, at::Tensor> qk_norm_rope_backward_cpu(at::Tensor const& grad,
                                                             at::Tensor const& x,
                                                             at::Tensor const& weight,
                                                             at::Tensor const& cos,
                                                             at::Tensor const& sin, double eps) {
  auto const in = rows(x), w = plain(weight), c = plain(cos), s = plain(sin), g = plain(grad);
  auto const tokens = in.size(0), heads = in.size(1), width = in.size(2);
  auto dx = at::empty({tokens, heads, width}, in.options());
  auto* const to = dx.mutable_data_ptr<float>();
  auto dweight = sum_blocks(
      tokens, grain(heads * width), width, [&](std::int64_t begin, std::int64_t end, float* sums) {
        std::vector<float> unrotated(static_cast<std::size_t>(width));
        for (auto t = begin; t < end; ++t)
          rotate_heads_backward(
              to + t * heads * width, sums, unrotated.data(),
              g.const_data_ptr<float>() + t * heads * width,
              in.const_data_ptr<float>() + t * in.stride(0), in.stride(1),
              w.const_data_ptr<float>(), c.const_data_ptr<float>() + t * width / 2,
              s.const_data_ptr<float>() + t * width / 2, heads, width, static_cast<float>(eps));
      });
  return {dx.to(x.scalar_type()), dweight.to(weight.scalar_type())};
}

}  // namespace
}  // namespace vlrerank::ops

TORCH_LIBRARY_IMPL(vlrerank, CPU, m) {
  m.impl("rms_norm", vlrerank::ops::rms_norm_cpu);
  m.impl("rms_norm_backward", vlrerank::ops::rms_norm_backward_cpu);
  m.impl("swiglu", vlrerank::ops::swiglu_cpu);
  m.impl("swiglu_backward", vlrerank::ops::swiglu_backward_cpu);
  m.impl("rope", vlrerank::ops::rope_cpu);
  m.impl("qk_norm_rope", vlrerank::ops::qk_norm_rope_cpu);
  m.impl("qk_norm_rope_backward", vlrerank::ops::qk_norm_rope_backward_cpu);
}
