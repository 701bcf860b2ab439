// tests/train/objective_test.cpp -- losses against autograd and against their definitions.
#include "train/objective.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace vlrerank {
namespace {

at::Tensor gradient_of(at::Tensor const& loss, at::Tensor const& leaf) {
  torch::autograd::backward({loss}, {});
  return leaf.grad();
}

at::Tensor leaf_of(at::Tensor const& values) {
  auto leaf = values.detach().clone();
  leaf.set_requires_grad(true);
  return leaf;
}

TEST(Objective, PointwiseIsBinaryCrossEntropyWithLogits) {
  auto const scores = at::tensor({2.5f, -1.0f, 0.25f, -90.0f, 70.0f});
  auto const labels = at::tensor({1.0f, 0.0f, 0.3f, 1.0f, 0.0f});
  LossGroup const groups[] = {{0, 3, 0.2}, {3, 2, 0.5}};
  auto const weights = at::tensor({0.2, 0.2, 0.2, 0.5, 0.5}, at::kDouble);
  LossParameters parameters;
  parameters.pos_weight = 3;

  auto const got =
      reranker_loss(scores, loss_terms(labels, groups, parameters, at::kCPU), parameters);

  auto const leaf = leaf_of(scores.to(at::kDouble));
  auto const want = at::binary_cross_entropy_with_logits(
      leaf, labels.to(at::kDouble), weights, at::full({1}, 3.0, at::kDouble), at::Reduction::Sum);
  EXPECT_NEAR(got.loss.item<double>(), want.item<double>(), 1e-9);
  EXPECT_TRUE(at::allclose(got.gradient.to(at::kDouble), gradient_of(want, leaf), 1e-6, 1e-9));
}

TEST(Objective, ListwiseIsCrossEntropyOverAPositiveAndItsNegatives) {
  auto const scores = at::tensor({0.5f, 1.5f, -0.5f, 3.0f, 1.0f, 2.0f, 0.0f});
  auto const labels = at::tensor({1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f});
  LossGroup const groups[] = {{0, 3, 0.25}, {3, 4, 0.25}};
  LossParameters parameters;
  parameters.kind = LossKind::listwise;
  parameters.temperature = 0.5;

  auto const got =
      reranker_loss(scores, loss_terms(labels, groups, parameters, at::kCPU), parameters);

  auto const leaf = leaf_of(scores.to(at::kDouble));
  auto group = [&](std::vector<std::int64_t> const& members) {
    auto const list = leaf.index_select(0, at::tensor(members, at::kLong)) / 0.5;
    return -at::log_softmax(list, 0)[0] * 0.25;
  };
  auto const want = group({0, 1, 2}) + group({3, 5, 6}) + group({4, 5, 6});
  EXPECT_NEAR(got.loss.item<double>(), want.item<double>(), 1e-9);
  EXPECT_TRUE(at::allclose(got.gradient.to(at::kDouble), gradient_of(want, leaf), 1e-6, 1e-9));
  EXPECT_EQ(got.count.item<double>(), 3);
  EXPECT_EQ(got.correct.item<double>(), 1);  // only the 3.0 beats all its negatives
}

TEST(Objective, ListwiseSkipsGroupsThatAreTooSmall) {
  auto const scores = at::tensor({0.5f, 1.5f});
  LossGroup const groups[] = {{0, 1, 1.0}, {1, 1, 1.0}};
  LossParameters parameters;
  parameters.kind = LossKind::listwise;

  auto const got = reranker_loss(
      scores, loss_terms(at::tensor({1.0f, 1.0f}), groups, parameters, at::kCPU), parameters);

  EXPECT_EQ(got.loss.item<double>(), 0);
  EXPECT_EQ(got.gradient.abs().sum().item<double>(), 0);
}

TEST(Objective, GradedLabelsWeighTheirSoftmax) {
  auto const scores = at::tensor({0.5f, 0.1f, -0.3f});
  LossGroup const groups[] = {{0, 3, 1.0}};
  LossParameters parameters;
  parameters.kind = LossKind::listwise;

  auto const got = reranker_loss(
      scores, loss_terms(at::tensor({1.0f, 0.5f, 0.0f}), groups, parameters, at::kCPU), parameters);

  double const first = std::log(std::exp(0.5) + std::exp(0.1) + std::exp(-0.3)) - 0.5;
  double const second = std::log(std::exp(0.1) + std::exp(-0.3)) - 0.1;
  EXPECT_NEAR(got.loss.item<double>(), first + 0.5 * second, 1e-7);
}

}  // namespace
}  // namespace vlrerank
