// kernels/dropout_test.cpp -- masks are random, repeatable, and the same wherever a token lies.
#include "kernels/dropout.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

using namespace vlrerank;

namespace {

at::Tensor mask(at::Tensor const& keys, std::int64_t width, ops::DropoutSite const& site) {
  return ops::counter_dropout(at::ones({keys.size(0), width}), keys, site) > 0;
}

}  // namespace

TEST(Dropout, PhiloxGivesThePublishedNumbers) {
  using Counter = std::array<std::uint32_t, 4>;
  // Known answers of the Random123 distribution for philox4x32, 10 rounds.
  EXPECT_EQ(ops::philox({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(ops::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(ops::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  auto const keys = at::arange(400, at::kLong);
  for (double const p : {0.05, 0.5, 0.9}) {
    auto const out = ops::counter_dropout(at::ones({400, 300}), keys, {1, 2, 3, p});
    auto const dropped = (out == 0).to(at::kFloat);
    double const spread = 5 * std::sqrt(p * (1 - p) / (400 * 300));
    EXPECT_NEAR(dropped.mean().item<double>(), p, spread);
    EXPECT_TRUE(
        at::allclose(out.masked_select(out != 0).max(), at::scalar_tensor(1 / (1 - p)), 1e-4));
    // Neither a token nor a feature is favoured.
    EXPECT_LT((dropped.mean(0) - p).abs().max().item<double>(), 5 * std::sqrt(p * (1 - p) / 400));
    EXPECT_LT((dropped.mean(1) - p).abs().max().item<double>(), 5 * std::sqrt(p * (1 - p) / 300));
  }
}

TEST(Dropout, AnotherSeedStepStreamOrTokenGivesAnotherMask) {
  auto const keys = at::arange(100, at::kLong);
  auto const first = mask(keys, 64, {1, 1, 1, 0.5});
  for (auto const& other : {mask(keys, 64, {2, 1, 1, 0.5}), mask(keys, 64, {1, 2, 1, 0.5}),
                            mask(keys, 64, {1, 1, 2, 0.5}), mask(keys + 100, 64, {1, 1, 1, 0.5}),
                            mask(keys + (std::int64_t{1} << 40), 64, {1, 1, 1, 0.5})})
    EXPECT_NEAR((first == other).to(at::kFloat).mean().item<double>(), 0.5, 0.04);
}

TEST(Dropout, TheMaskBelongsToTheTokenAndTheFeature) {
  auto const keys = at::tensor({5, -9, 77, 5}, at::kLong);
  ops::DropoutSite const site{3, 4, 5, 0.4};
  auto const wide = mask(keys, 200, site);

  EXPECT_TRUE(at::equal(mask(keys.flip(0), 200, site).flip(0), wide));
  EXPECT_TRUE(at::equal(wide[0], wide[3]));
  for (std::int64_t width : {1, 7, 63, 65, 129})
    EXPECT_TRUE(at::equal(mask(keys, width, site), wide.narrow(1, 0, width))) << width;
}

TEST(Dropout, TheMaskIsWhatTheHeaderSays) {
  ops::DropoutSite const site{3, 4, 5, 0.4};
  auto const seen = mask(at::tensor({std::int64_t{0x123456789}}, at::kLong), 256, site);
  // The key is the only part not spelled out: find it by its definition, splitmix64 of both.
  auto const scatter = [](std::uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
  };
  auto const key = scatter(site.seed ^ scatter(4));
  for (std::uint32_t f = 0; f < 256; ++f) {
    auto const words =
        ops::philox({f / 64 * 8 + f % 8, 5, 0x23456789, 0x1},
                    {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
    auto const half = f / 8 % 8;
    auto const bits = half < 4 ? words[half] & 0xffff : words[half - 4] >> 16;
    EXPECT_EQ(seen[0][f].item<bool>(), bits >= std::lround(0.4 * 65536)) << f;
  }
}

TEST(Dropout, TheGradientPassesThroughTheSameMask) {
  auto const keys = at::arange(10, at::kLong);
  auto const x = at::randn({10, 50}).set_requires_grad(true);
  ops::DropoutSite const site{9, 8, 7, 0.3};
  auto const grad = at::randn({10, 50});

  ops::counter_dropout(x, keys, site).backward(grad);

  EXPECT_TRUE(at::equal(x.grad(), ops::counter_dropout(grad, keys, site)));
}

TEST(Dropout, RefusesSharesOutsideItsRange) {
  auto const x = at::ones({1, 2});
  auto const key = at::zeros({1}, at::kLong);
  EXPECT_TRUE(at::equal(ops::counter_dropout(x, key, {1, 1, 1, 0}), x));
  EXPECT_THROW(ops::counter_dropout(x, key, {1, 1, 1, 1}), Error);
  EXPECT_THROW(ops::counter_dropout(x, key, {1, 1, 1, -0.1}), Error);
}
