// kernels/attention_test.cpp -- attention over runs against a masked softmax written out.
#include "kernels/attention.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

using namespace vlrerank;

namespace {

/// Every run by itself, with all scores and an explicit mask.
at::Tensor plain_attention(at::Tensor const& q, at::Tensor const& k, at::Tensor const& v,
                           AttentionRuns const& runs, double scale) {
  auto const group = q.size(1) / k.size(1);
  std::vector<at::Tensor> parts;
  for (std::size_t r = 0; r + 1 < runs.cu_q.size(); ++r) {
    auto const queries = runs.cu_q[r + 1] - runs.cu_q[r], keys = runs.cu_k[r + 1] - runs.cu_k[r];
    auto const index = runs.kv_index.defined()
                           ? runs.kv_index.narrow(0, runs.cu_k[r], keys)
                           : at::arange(runs.cu_k[r], runs.cu_k[r + 1], at::kLong);
    auto const expand = [&](at::Tensor const& x) {
      return x.index_select(0, index).repeat_interleave(group, 1).transpose(0, 1);
    };
    auto const own = q.narrow(0, runs.cu_q[r], queries).transpose(0, 1);
    auto scores = at::bmm(own, expand(k).transpose(1, 2)) * scale;
    if (runs.mask == Mask::causal)
      scores = scores.masked_fill(at::ones({queries, keys}, at::kBool).triu(keys - queries + 1),
                                  -INFINITY);
    parts.push_back(at::bmm(scores.softmax(-1), expand(v)).transpose(0, 1));
  }
  return at::cat(parts);
}

AttentionRuns consecutive(std::vector<std::int32_t> const& cu, Mask mask) {
  AttentionRuns runs;
  runs.cu_q = runs.cu_k = cu;
  runs.mask = mask;
  return runs;
}

/// A prefix of 70 tokens, three documents after it, and a row of its own without sharing.
AttentionRuns branching() {
  AttentionRuns runs;
  runs.cu_q = {0, 70, 71, 90, 160, 165};
  runs.cu_k = {0};
  std::vector<std::int64_t> index;
  for (std::size_t r = 0; r + 1 < runs.cu_q.size(); ++r) {
    if (r >= 1 && r <= 3)
      for (std::int64_t t = 0; t < 70; ++t) index.push_back(t);
    for (auto t = runs.cu_q[r]; t < runs.cu_q[r + 1]; ++t) index.push_back(t);
    runs.cu_k.push_back(static_cast<std::int32_t>(index.size()));
  }
  runs.kv_index = at::tensor(index, at::kLong);
  return runs;
}

void expect_plain(AttentionRuns const& runs, std::int64_t heads, std::int64_t kv_heads,
                  std::int64_t width, std::int64_t key_rows) {
  at::manual_seed(11);
  auto const leaf = [&](std::int64_t rows, std::int64_t n) {
    return at::randn({rows, n, width}).set_requires_grad(true);
  };
  auto const q = leaf(runs.cu_q.back(), heads);
  auto const k = leaf(key_rows, kv_heads), v = leaf(key_rows, kv_heads);
  auto const scale = 1 / std::sqrt(static_cast<double>(width));
  auto const out = varlen_attention(q, k, v, runs, scale);
  auto const want = plain_attention(q, k, v, runs, scale);
  ASSERT_TRUE(at::allclose(out, want, 1e-5, 1e-5)) << (out - want).abs().max();
  auto const grad = at::randn_like(want);
  out.backward(grad);
  std::vector<at::Tensor> ours;
  for (auto const* x : {&q, &k, &v}) {
    ours.push_back(x->grad().clone());
    x->mutable_grad().reset();
  }
  want.backward(grad);
  for (std::size_t i = 0; i < 3; ++i) {
    auto const plain = (i == 0 ? q : i == 1 ? k : v).grad();
    EXPECT_TRUE(at::allclose(ours[i], plain, 1e-4, 2e-5))
        << i << ": " << (ours[i] - plain).abs().max();
  }
}

}  // namespace

TEST(Attention, CausalRunsOfManyLengths) {
  expect_plain(consecutive({0, 1, 3, 3, 66, 200}, Mask::causal), 4, 2, 16, 200);
  expect_plain(consecutive({0, 129}, Mask::causal), 3, 3, 8, 129);
}

TEST(Attention, FullRuns) {
  expect_plain(consecutive({0, 16, 17, 150}, Mask::full), 2, 2, 24, 150);
}

TEST(Attention, BranchesSeeTheirPrefix) {
  expect_plain(branching(), 6, 2, 32, 165);
}

TEST(Attention, SingleQueriesOverLongKeys) {
  AttentionRuns runs;
  runs.cu_q = {0, 1, 2, 3};
  runs.cu_k = {0, 50, 51, 180};
  expect_plain(runs, 8, 2, 16, 180);
  expect_plain(runs, 100, 1, 8, 180);
}

TEST(Attention, StridedPartsOfAJointProjection) {
  at::manual_seed(12);
  auto const runs = consecutive({0, 10, 30}, Mask::full);
  auto const joint = at::randn({30, 3 * 2 * 8}).set_requires_grad(true);
  auto const parts = joint.view({30, 3, 2, 8}).unbind(1);
  auto const out = varlen_attention(parts[0], parts[1], parts[2], runs, 0.3);
  auto const want = plain_attention(parts[0], parts[1], parts[2], runs, 0.3);
  EXPECT_TRUE(at::allclose(out, want, 1e-5, 1e-5));

  out.sum().backward();
  auto const ours = joint.grad().clone();
  joint.mutable_grad().zero_();
  want.sum().backward();
  EXPECT_TRUE(at::allclose(ours, joint.grad(), 1e-4, 1e-5));
}

TEST(Attention, LargeScoresDoNotOverflow) {
  auto const runs = consecutive({0, 20}, Mask::causal);
  auto const q = at::full({20, 1, 8}, 40.0), v = at::randn({20, 1, 8});
  auto const out = varlen_attention(q, q, v, runs, 1.0);

  EXPECT_TRUE(at::allclose(out, plain_attention(q, q, v, runs, 1.0), 1e-5, 1e-5));
}

TEST(Attention, RunsMustCoverQueriesAndKeys) {
  auto const x = at::zeros({5, 1, 8});
  EXPECT_THROW(varlen_attention(x, x, x, consecutive({0, 4}, Mask::causal), 1.0), Error);
  EXPECT_THROW(varlen_attention(at::zeros({5, 3, 8}), at::zeros({5, 2, 8}), at::zeros({5, 2, 8}),
                                consecutive({0, 5}, Mask::causal), 1.0),
               Error);
}
