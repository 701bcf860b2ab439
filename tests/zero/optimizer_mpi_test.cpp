// tests/zero/optimizer_mpi_test.cpp -- every stage and number of ranks trains like the formula.
#include "zero/optimizer.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/mpi_main.hpp"

namespace vlrerank {
namespace {

using test::world;

std::vector<Arena> make_arenas() {
  std::vector<Arena> arenas;
  arenas.emplace_back(std::vector<Slice>{{"a.weight", {5, 7}, RateGroup::base, Decay::yes},
                                         {"a.norm", {7}, RateGroup::base, Decay::no},
                                         {"v.weight", {3, 3}, RateGroup::vision, Decay::yes}},
                      128 * world().size(), at::kCPU);
  arenas.emplace_back(std::vector<Slice>{{"b.weight", {11}, RateGroup::base, Decay::yes}},
                      128 * world().size(), at::kCPU);
  for (auto& arena : arenas)
    arena.values().copy_(at::arange(arena.padded_size(), at::kFloat).sin());
  return arenas;
}

/// The gradient of every rank's share adds up to `full`.
void fill_gradients(std::vector<Arena>& arenas, int step) {
  double share = (world().rank() + 1) * 2.0 / (world().size() * (world().size() + 1));
  for (auto& arena : arenas) {
    auto const full = (at::arange(arena.padded_size(), at::kFloat) * 0.37 + step).cos();
    arena.gradients().copy_(full * share);
  }
}

/// One tensor stepped by the formula in float64.
struct Plain {
  at::Tensor p, m, v;
  void step(at::Tensor const& g, double lr, double decay, std::int64_t t) {
    p = p - lr * decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.95 * v + 0.05 * g * g;
    p = p - lr * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.95, t))).sqrt() + 1e-8);
  }
};

class Stages : public ::testing::TestWithParam<ZeroStage> {};

TEST_P(Stages, FollowTheFormulaForAnyNumberOfRanks) {
  auto arenas = make_arenas();
  OptimizerSettings settings;
  settings.max_grad_norm = 2;  // clips
  ShardedAdamW optimizer(arenas, world(), settings, GetParam());
  std::vector<Plain> plain;
  std::vector<at::Tensor> decay;
  std::vector<at::Tensor> rate;
  StepRates const rates{1e-2, 3e-2, 1e-2};
  for (auto& arena : arenas) {
    auto const p = arena.values().to(at::kDouble).clone();
    plain.push_back({p, at::zeros_like(p), at::zeros_like(p)});
    decay.push_back(at::zeros_like(p));
    rate.push_back(at::zeros_like(p));
    for (auto const& span : arena.spans()) {
      decay.back().slice(0, span.begin, span.end).fill_(span.decay == Decay::yes ? 0.1 : 0);
      rate.back()
          .slice(0, span.begin, span.end)
          .fill_(span.rate == RateGroup::vision ? 3e-2 : 1e-2);
    }
  }

  for (int step = 1; step <= 4; ++step) {
    fill_gradients(arenas, step);
    double const norm = optimizer.step(rates);

    std::vector<at::Tensor> full;
    double squares = 0;
    for (auto& arena : arenas) {
      full.push_back(
          (at::arange(arena.padded_size(), at::kFloat) * 0.37 + step).cos().to(at::kDouble));
      squares += full.back().square().sum().item<double>();
    }
    ASSERT_NEAR(norm, std::sqrt(squares), 1e-4);
    for (std::size_t i = 0; i < arenas.size(); ++i) {
      auto const g = full[i] * std::min(1.0, 2 / (std::sqrt(squares) + 1e-6));
      for (auto const& span : arenas[i].spans()) {
        auto cut = [&](at::Tensor const& t) { return t.slice(0, span.begin, span.end); };
        Plain part{cut(plain[i].p), cut(plain[i].m), cut(plain[i].v)};
        part.step(cut(g), span.rate == RateGroup::vision ? 3e-2 : 1e-2,
                  span.decay == Decay::yes ? 0.1 : 0, step);
        cut(plain[i].p).copy_(part.p);
        cut(plain[i].m).copy_(part.m);
        cut(plain[i].v).copy_(part.v);
      }
      auto const size = arenas[i].size();
      auto const got = arenas[i].values().narrow(0, 0, size).to(at::kDouble);
      EXPECT_TRUE(at::allclose(got, plain[i].p.narrow(0, 0, size), 1e-5, 1e-6)) << "step " << step;
      EXPECT_EQ(arenas[i].gradients().abs().sum().item<float>(), 0);
    }
  }
  EXPECT_EQ(optimizer.steps().text, 4);
  EXPECT_EQ(optimizer.steps().vision, 4);
}

TEST_P(Stages, ANormThatIsNotFiniteChangesNothing) {
  auto arenas = make_arenas();
  auto const before = arenas[0].values().clone();
  ShardedAdamW optimizer(arenas, world(), OptimizerSettings{}, GetParam());
  fill_gradients(arenas, 1);
  if (world().rank() == world().size() - 1)
    arenas[0].gradients()[3].fill_(std::numeric_limits<float>::quiet_NaN());

  double const norm = optimizer.step({1e-2, 1e-2, 1e-2});

  EXPECT_FALSE(std::isfinite(norm));
  EXPECT_TRUE(at::equal(arenas[0].values(), before));
  EXPECT_EQ(optimizer.steps().text, 0);
  EXPECT_EQ(optimizer.first_moment(0).abs().sum().item<float>(), 0);
}

TEST_P(Stages, AStepWithoutPicturesLeavesTheVisionTowerAlone) {
  auto arenas = make_arenas();
  auto const& span = arenas[0].spans().back();
  ASSERT_EQ(span.rate, RateGroup::vision);
  auto const vision = arenas[0].values().slice(0, span.begin, span.end).clone();
  auto const text = arenas[0].values().slice(0, 0, span.begin).clone();
  ShardedAdamW optimizer(arenas, world(), OptimizerSettings{}, GetParam());
  fill_gradients(arenas, 1);
  arenas[0].gradients().slice(0, span.begin, span.end).zero_();

  optimizer.step({1e-2, 1e-2, 1e-2}, Pictures::none);

  EXPECT_TRUE(at::equal(arenas[0].values().slice(0, span.begin, span.end), vision));
  EXPECT_FALSE(at::equal(arenas[0].values().slice(0, 0, span.begin), text));
  EXPECT_EQ(optimizer.steps().text, 1);
  EXPECT_EQ(optimizer.steps().vision, 0);
}

TEST_P(Stages, MomentsTravelBetweenRankCountsByTheirUnpaddedOrder) {
  auto arenas = make_arenas();
  ShardedAdamW optimizer(arenas, world(), OptimizerSettings{}, GetParam());
  auto const first = at::arange(arenas[0].size(), at::kFloat);

  optimizer.set_moments(0, first, first * 2);

  EXPECT_TRUE(at::equal(optimizer.first_moment(0), first));
  EXPECT_TRUE(at::equal(optimizer.second_moment(0), first * 2));
}

INSTANTIATE_TEST_SUITE_P(Zero, Stages,
                         ::testing::Values(ZeroStage::replicated, ZeroStage::optimizer));

}  // namespace
}  // namespace vlrerank

VLR_MPI_TEST_MAIN()
