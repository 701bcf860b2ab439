// kernels/attention_cpu.cpp -- exact float32 attention, run by run and head by head.
// Matrix products go to the BLAS that LibTorch carries, straight from the strided tensors; only
// the keys of a run that lie apart (a shared prefix and its document) are gathered first.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/clones.hpp"
#include "kernels/exp.hpp"

extern "C" void sgemm_(char const* transa, char const* transb, int const* m, int const* n,
                       int const* k, float const* alpha, float const* a, int const* lda,
                       float const* b, int const* ldb, float const* beta, float* c, int const* ldc);

namespace vlrerank::cpu {
namespace {

constexpr std::int64_t query_block = 64;  // rows of scores made at once

/// A matrix whose rows begin `stride` floats apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};
using In = Rows<float const>;
using Out = Rows<float>;

/// c [m, n] = alpha a [m, k] b [n, k]^T, row-major.
void multiply_nt(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, In a, In b, Out c) {
  int const im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
  int const lda = static_cast<int>(a.stride), ldb = static_cast<int>(b.stride),
            ldc = static_cast<int>(c.stride);
  float const beta = 0;
  sgemm_("T", "N", &in, &im, &ik, &alpha, b.data, &ldb, a.data, &lda, &beta, c.data, &ldc);
}

/// c [m, n] = a [m, k] b [k, n], row-major.
void multiply_nn(std::int64_t m, std::int64_t n, std::int64_t k, In a, In b, Out c) {
  int const im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
  int const lda = static_cast<int>(a.stride), ldb = static_cast<int>(b.stride),
            ldc = static_cast<int>(c.stride);
  float const alpha = 1, beta = 0;
  sgemm_("N", "N", &in, &im, &ik, &alpha, b.data, &ldb, a.data, &lda, &beta, c.data, &ldc);
}

/// c [m, n] += a [k, m]^T b [k, n], row-major.
void add_multiply_tn(std::int64_t m, std::int64_t n, std::int64_t k, In a, In b, Out c) {
  int const im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
  int const lda = static_cast<int>(a.stride), ldb = static_cast<int>(b.stride),
            ldc = static_cast<int>(c.stride);
  float const alpha = 1, beta = 1;
  sgemm_("N", "T", &in, &im, &ik, &alpha, b.data, &ldb, a.data, &lda, &beta, c.data, &ldc);
}

/// Scores become e^(score - maximum), those from `seen` on become 0. @return log-sum-exp, sum
VLR_CPU_CLONES std::pair<float, float> softmax_row(float* scores, std::int64_t seen,
                                                   std::int64_t width) {
  float top = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : top)
  for (std::int64_t i = 0; i < seen; ++i) top = scores[i] > top ? scores[i] : top;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < seen; ++i) {
    scores[i] = ops::fast_exp(scores[i] - top);
    sum += scores[i];
  }
  for (auto i = seen; i < width; ++i) scores[i] = 0;
  return {top + std::log(sum), sum};
}

VLR_CPU_CLONES void scale_row(float* row, std::int64_t width, float factor) {
  for (std::int64_t i = 0; i < width; ++i) row[i] *= factor;
}

VLR_CPU_CLONES float dot_rows(float const* a, float const* b, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

VLR_CPU_CLONES void probability_row(float* scores, std::int64_t seen, std::int64_t width,
                                    float lse) {
  for (std::int64_t i = 0; i < seen; ++i) scores[i] = ops::fast_exp(scores[i] - lse);
  for (auto i = seen; i < width; ++i) scores[i] = 0;
}

/// grad becomes the gradient of the unscaled scores: p (grad - delta) scale.
VLR_CPU_CLONES void score_gradient_row(float* grad, float const* p, std::int64_t width, float delta,
                                       float scale) {
  for (std::int64_t i = 0; i < width; ++i) grad[i] = p[i] * (grad[i] - delta) * scale;
}

VLR_CPU_CLONES void add_row(float* to, float const* from, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) to[i] += from[i];
}

/// The sizes that all runs share, and where a run's queries and keys lie.
struct Layout {
  AttentionRuns const& runs;
  std::int64_t heads, kv_heads, group, width;
  std::int64_t const* index;  // nullptr: key = row

  Layout(at::Tensor const& q, at::Tensor const& k, AttentionRuns const& given)
      : runs(given),
        heads(q.size(1)),
        kv_heads(k.size(1)),
        group(heads / kv_heads),
        width(q.size(2)),
        index(given.kv_index.defined() ? given.kv_index.const_data_ptr<std::int64_t>() : nullptr) {}

  std::int64_t count() const { return static_cast<std::int64_t>(runs.cu_q.size()) - 1; }
  std::int64_t first_q(std::int64_t r) const { return runs.cu_q[static_cast<std::size_t>(r)]; }
  std::int64_t first_k(std::int64_t r) const { return runs.cu_k[static_cast<std::size_t>(r)]; }
  std::int64_t queries(std::int64_t r) const { return first_q(r + 1) - first_q(r); }
  std::int64_t keys(std::int64_t r) const { return first_k(r + 1) - first_k(r); }
  /// The keys that query i of run r sees.
  std::int64_t seen(std::int64_t r, std::int64_t i) const {
    return runs.mask == Mask::full ? keys(r) : keys(r) - queries(r) + i + 1;
  }
  std::int64_t row(std::int64_t key) const { return index ? index[key] : key; }
  /// Whether the run's keys are consecutive rows, so that no gathering is needed.
  bool together(std::int64_t r) const {
    auto const n = keys(r);
    for (std::int64_t i = 1; index && i < n; ++i)
      if (index[first_k(r) + i] != index[first_k(r)] + i) return false;
    return true;
  }
};

/// A tile of score rows: some queries of one head, or all heads of one group for a single query.
struct Tile {
  std::int64_t token, head, rows, limit;
  bool over_heads;

  std::int64_t offset(at::Tensor const& x) const {
    return token * x.stride(0) + head * x.stride(1);
  }
  std::int64_t step(at::Tensor const& x) const { return x.stride(over_heads ? 1 : 0); }
  In in(at::Tensor const& x) const { return {x.const_data_ptr<float>() + offset(x), step(x)}; }
  Out out(at::Tensor& x) const { return {x.mutable_data_ptr<float>() + offset(x), step(x)}; }
  /// Where row i keeps its log-sum-exp in [Q, Hq].
  std::int64_t place(std::int64_t i, std::int64_t heads) const {
    return over_heads ? token * heads + head + i : (token + i) * heads + head;
  }
};

/// Calls run(tile, first query of the tile within the run) for all tiles of run r and key head h.
template <class Visit>
void for_each_tile(Layout const& layout, std::int64_t r, std::int64_t h, Visit const& visit) {
  auto const first = layout.first_q(r);
  if (layout.queries(r) == 1) {
    visit(Tile{first, h * layout.group, layout.group, layout.keys(r), true}, std::int64_t{0});
    return;
  }
  for (std::int64_t begin = 0; begin < layout.queries(r); begin += query_block) {
    auto const rows = std::min(query_block, layout.queries(r) - begin);
    auto const limit = layout.seen(r, begin + rows - 1);
    for (std::int64_t g = 0; g < layout.group; ++g)
      visit(Tile{first + begin, h * layout.group + g, rows, limit, false}, begin);
  }
}

/// The keys (or values) of run r and head h as rows: in place, or gathered into `scratch`.
In take(at::Tensor const& x, Layout const& layout, std::int64_t r, std::int64_t h, bool together,
        std::vector<float>& scratch) {
  auto const* const base = x.const_data_ptr<float>() + h * x.stride(1);
  auto const first = layout.first_k(r);
  if (together) return {base + layout.row(first) * x.stride(0), x.stride(0)};
  scratch.resize(static_cast<std::size_t>(layout.keys(r) * layout.width));
  for (std::int64_t i = 0; i < layout.keys(r); ++i)
    std::copy_n(base + layout.row(first + i) * x.stride(0), layout.width,
                scratch.data() + i * layout.width);
  return {scratch.data(), layout.width};
}

/// Adds the gradient of run r's gathered keys to the rows that they came from.
void give(at::Tensor& x, std::vector<float> const& scratch, Layout const& layout, std::int64_t r,
          std::int64_t h) {
  auto* const base = x.mutable_data_ptr<float>() + h * x.stride(1);
  for (std::int64_t i = 0; i < layout.keys(r); ++i)
    add_row(base + layout.row(layout.first_k(r) + i) * x.stride(0),
            scratch.data() + i * layout.width, layout.width);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attention_forward(at::Tensor const& q, at::Tensor const& k,
                                                     at::Tensor const& v, AttentionRuns const& runs,
                                                     double scale) {
  Layout const layout(q, k, runs);
  auto out = at::empty({q.size(0), layout.heads, layout.width}, q.options());
  auto lse = at::empty({q.size(0), layout.heads}, q.options());
  auto* const log_sums = lse.mutable_data_ptr<float>();
  auto const alpha = static_cast<float>(scale);
  auto const tasks = layout.count() * layout.kv_heads;
  at::parallel_for(0, tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scores, keys, values;
    for (auto task = begin; task < end; ++task) {
      auto const r = task / layout.kv_heads, h = task % layout.kv_heads;
      if (layout.queries(r) == 0) continue;
      bool const together = layout.together(r);
      auto const run_k = take(k, layout, r, h, together, keys);
      auto const run_v = take(v, layout, r, h, together, values);
      for_each_tile(layout, r, h, [&](Tile const& tile, std::int64_t first) {
        scores.resize(static_cast<std::size_t>(tile.rows * tile.limit));
        Out const p{scores.data(), tile.limit};
        multiply_nt(tile.rows, tile.limit, layout.width, alpha, tile.in(q), run_k, p);
        float sums[query_block];
        std::vector<float> many;  // only for more heads in a group than a block has rows
        auto* total = sums;
        if (tile.rows > query_block) {
          many.resize(static_cast<std::size_t>(tile.rows));
          total = many.data();
        }
        for (std::int64_t i = 0; i < tile.rows; ++i) {
          auto const seen = tile.over_heads ? tile.limit : layout.seen(r, first + i);
          std::tie(log_sums[tile.place(i, layout.heads)], total[i]) =
              softmax_row(p.data + i * p.stride, seen, tile.limit);
        }
        auto const to = tile.out(out);
        multiply_nn(tile.rows, layout.width, tile.limit, {p.data, p.stride}, run_v, to);
        for (std::int64_t i = 0; i < tile.rows; ++i)
          scale_row(to.data + i * to.stride, layout.width, 1 / total[i]);
      });
    }
  });
  return {out, lse};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(
    at::Tensor const& grad, at::Tensor const& q, at::Tensor const& k, at::Tensor const& v,
    at::Tensor const& out, at::Tensor const& lse, AttentionRuns const& runs, double scale) {
  Layout const layout(q, k, runs);
  auto dq = at::empty({q.size(0), layout.heads, layout.width}, q.options());
  auto dk = at::zeros({k.size(0), layout.kv_heads, layout.width}, q.options());
  auto dv = at::zeros_like(dk);
  auto const* const log_sums = lse.const_data_ptr<float>();
  auto const alpha = static_cast<float>(scale);
  // A key may belong to many runs, but to one head: heads are what threads can share safely.
  at::parallel_for(0, layout.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scores, gradients, keys, values, key_sums, value_sums;
    for (auto h = begin; h < end; ++h) {
      for (std::int64_t r = 0; r < layout.count(); ++r) {
        if (layout.queries(r) == 0) continue;
        bool const together = layout.together(r);
        auto const run_k = take(k, layout, r, h, together, keys);
        auto const run_v = take(v, layout, r, h, together, values);
        Out to_k{nullptr, layout.width}, to_v{nullptr, layout.width};
        if (together) {
          auto const row = layout.row(layout.first_k(r));
          to_k = {dk.mutable_data_ptr<float>() + row * dk.stride(0) + h * dk.stride(1),
                  dk.stride(0)};
          to_v = {dv.mutable_data_ptr<float>() + row * dv.stride(0) + h * dv.stride(1),
                  dv.stride(0)};
        } else {
          auto const size = static_cast<std::size_t>(layout.keys(r) * layout.width);
          key_sums.assign(size, 0);
          value_sums.assign(size, 0);
          to_k.data = key_sums.data();
          to_v.data = value_sums.data();
        }
        for_each_tile(layout, r, h, [&](Tile const& tile, std::int64_t first) {
          auto const size = static_cast<std::size_t>(tile.rows * tile.limit);
          scores.resize(size);
          gradients.resize(size);
          Out const p{scores.data(), tile.limit}, dp{gradients.data(), tile.limit};
          auto const queries = tile.in(q), down = tile.in(grad), result = tile.in(out);
          multiply_nt(tile.rows, tile.limit, layout.width, alpha, queries, run_k, p);
          multiply_nt(tile.rows, tile.limit, layout.width, 1, down, run_v, dp);
          for (std::int64_t i = 0; i < tile.rows; ++i) {
            auto const seen = tile.over_heads ? tile.limit : layout.seen(r, first + i);
            probability_row(p.data + i * p.stride, seen, tile.limit,
                            log_sums[tile.place(i, layout.heads)]);
            auto const delta = dot_rows(down.data + i * down.stride,
                                        result.data + i * result.stride, layout.width);
            score_gradient_row(dp.data + i * dp.stride, p.data + i * p.stride, tile.limit, delta,
                               alpha);
          }
          In const ds{dp.data, dp.stride};
          add_multiply_tn(tile.limit, layout.width, tile.rows, {p.data, p.stride}, down, to_v);
          multiply_nn(tile.rows, layout.width, tile.limit, ds, run_k, tile.out(dq));
          add_multiply_tn(tile.limit, layout.width, tile.rows, ds, queries, to_k);
        });
        if (!together) {
          give(dk, key_sums, layout, r, h);
          give(dv, value_sums, layout, r, h);
        }
      }
    }
  });
  return {dq, dk, dv};
}

}  // namespace vlrerank::cpu
