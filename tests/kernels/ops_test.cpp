// kernels/ops_test.cpp -- the fused operators against plain tensor arithmetic, values and
// gradients.
#include "kernels/ops.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.hpp"
#include "kernels/exp.hpp"
#include "kernels/rows.hpp"

using namespace vlrerank;

namespace {

using Inputs = std::vector<at::Tensor>;

/// Same values and gradients from both functions, all inputs being leaves.
void expect_same(Inputs const& inputs, std::function<at::Tensor(Inputs const&)> const& ours,
                 std::function<at::Tensor(Inputs const&)> const& plain, double tolerance = 2e-5) {
  auto const leaves = [&] {
    Inputs all;
    for (auto const& x : inputs) all.push_back(x.detach().clone().set_requires_grad(true));
    return all;
  };
  auto const a = leaves(), b = leaves();
  auto const one = ours(a), two = plain(b);
  ASSERT_TRUE(at::allclose(one, two, tolerance, tolerance)) << (one - two).abs().max();
  auto const grad = at::randn_like(two);
  one.backward(grad);
  two.backward(grad);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(at::allclose(a[i].grad(), b[i].grad(), tolerance, tolerance))
        << "input " << i << ": " << (a[i].grad() - b[i].grad()).abs().max();
}

at::Tensor plain_norm(at::Tensor const& x, at::Tensor const& weight) {
  return x * (x.square().mean(-1, true) + 1e-6).rsqrt() * weight;
}

at::Tensor plain_rope(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin) {
  auto const c = at::cat({cos, cos}, 1).unsqueeze(1), s = at::cat({sin, sin}, 1).unsqueeze(1);
  auto const halves = x.chunk(2, -1);
  return x * c + at::cat({halves[1].neg(), halves[0]}, -1) * s;
}

}  // namespace

TEST(Ops, RmsNormIsThePlainFormula) {
  at::manual_seed(1);
  for (std::int64_t width : {1, 7, 32, 130})
    expect_same(
        {at::randn({9, width}) * 3, at::randn({width})},
        [](Inputs const& in) { return ops::rms_norm(in[0], in[1], 1e-6); },
        [](Inputs const& in) { return plain_norm(in[0], in[1]); });
}

TEST(Ops, RmsNormTakesManyDimensionsAndNoRows) {
  auto const x = at::randn({2, 3, 5});
  EXPECT_TRUE(at::allclose(ops::rms_norm(x, at::ones({5}), 1e-6), plain_norm(x, at::ones({5}))));
  EXPECT_EQ(ops::rms_norm(at::zeros({0, 5}), at::ones({5}), 1e-6).size(0), 0);
}

TEST(Ops, SwigluIsThePlainFormulaAlsoOnHalvesOfOneMatrix) {
  at::manual_seed(2);
  auto const plain = [](Inputs const& in) { return at::silu(in[0]) * in[1]; };
  expect_same(
      {at::randn({11, 37}) * 4, at::randn({11, 37})},
      [](Inputs const& in) { return ops::swiglu(in[0], in[1]); }, plain);
  expect_same(
      {at::randn({11, 48}) * 4},
      [](Inputs const& in) {
        auto const halves = in[0].chunk(2, 1);
        return ops::swiglu(halves[0], halves[1]);
      },
      [](Inputs const& in) {
        auto const halves = in[0].chunk(2, 1);
        return at::silu(halves[0]) * halves[1];
      });
}

TEST(Ops, SwigluKeepsItsLimits) {
  auto const gate = at::tensor({-1e4f, -100.0f, 0.0f, 100.0f, 1e4f}).view({1, 5});
  auto const out = ops::swiglu(gate, at::ones({1, 5}));

  EXPECT_TRUE(at::allclose(out, at::tensor({0.0f, 0.0f, 0.0f, 100.0f, 1e4f}).view({1, 5})));
  EXPECT_TRUE(ops::swiglu(gate * std::nanf(""), at::ones({1, 5})).isnan().all().item<bool>());
}

TEST(Ops, RopeRotatesHalves) {
  at::manual_seed(3);
  auto const angles = at::randn({6, 4});
  expect_same(
      {at::randn({6, 3, 8})},
      [&](Inputs const& in) { return ops::rope(in[0], angles.cos(), angles.sin()); },
      [&](Inputs const& in) { return plain_rope(in[0], angles.cos(), angles.sin()); });
}

TEST(Ops, RopeTakesOnePartOfAJointProjection) {
  at::manual_seed(4);
  auto const angles = at::randn({6, 4});
  auto const part = [](Inputs const& in) { return in[0].view({6, 3, 2, 8}).unbind(1)[1]; };
  expect_same(
      {at::randn({6, 48})},
      [&](Inputs const& in) { return ops::rope(part(in), angles.cos(), angles.sin()); },
      [&](Inputs const& in) { return plain_rope(part(in), angles.cos(), angles.sin()); });
}

TEST(Ops, QkNormRopeIsNormThenRope) {
  at::manual_seed(5);
  auto const angles = at::randn({40, 8});
  expect_same(
      {at::randn({40, 3, 16}), at::randn({16})},
      [&](Inputs const& in) {
        return ops::qk_norm_rope(in[0], in[1], angles.cos(), angles.sin(), 1e-6);
      },
      [&](Inputs const& in) {
        return plain_rope(plain_norm(in[0], in[1]), angles.cos(), angles.sin());
      });
}

TEST(Ops, OtherDtypesAreComputedInFloat32) {
  at::manual_seed(6);
  auto const x = at::randn({5, 16}).to(at::kBFloat16), w = at::randn({16}).to(at::kBFloat16);
  auto const out = ops::rms_norm(x, w, 1e-6);

  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(out, plain_norm(x.to(at::kFloat), w.to(at::kFloat)).to(at::kBFloat16)));
}

TEST(Ops, WrongShapesAreNamed) {
  EXPECT_THROW(ops::rms_norm(at::zeros({2, 3}), at::zeros({4}), 1e-6), Error);
  EXPECT_THROW(ops::swiglu(at::zeros({2, 3}), at::zeros({2, 4})), Error);
  EXPECT_THROW(ops::rope(at::zeros({2, 1, 8}), at::zeros({2, 8}), at::zeros({2, 8})), Error);
}

TEST(Ops, FastExpIsWithinTwoUnitsOfTheLastPlace) {
  for (double x = -87; x < 88; x += 0.0137) {
    auto const want = std::exp(static_cast<double>(static_cast<float>(x)));
    EXPECT_NEAR(ops::fast_exp(static_cast<float>(x)) / want, 1, 2.5e-7) << x;
  }
  EXPECT_EQ(ops::fast_exp(0), 1);
  EXPECT_EQ(ops::fast_exp(-INFINITY), 0);
}

TEST(Ops, AddRowsAddsRepeatedRowsInOrder) {
  at::manual_seed(7);
  auto const rows = at::randn({50, 9});
  auto const index = at::randint(0, 6, {50}, at::kLong);
  auto ours = at::ones({6, 9}), plain = at::ones({6, 9});

  ops::add_rows_(ours, index, rows);

  EXPECT_TRUE(at::allclose(ours, plain.index_add(0, index, rows)));
  EXPECT_THROW(ops::add_rows_(ours, at::full({50}, 6, at::kLong), rows), Error);
}
