// zero/optimizer.cpp -- reduce, clip, update, gather.
#include "zero/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace vlrerank {
namespace {

double rate_of(Span const& span, StepRates const& rates) {
  switch (span.rate) {
    case RateGroup::vision:
      return rates.vision;
    case RateGroup::aligner:
      return rates.aligner;
    default:
      return rates.base;
  }
}

}  // namespace

ShardedAdamW::ShardedAdamW(std::vector<Arena>& arenas, Communicator& comm,
                           OptimizerSettings const& settings, ZeroStage stage)
    : arenas_(arenas), comm_(comm), settings_(settings), stage_(stage) {
  for (auto& arena : arenas_) {
    VLR_REQUIRE(arena.padded_size() % comm.size() == 0,
                text(arena.padded_size(), " trainable values do not split over ", comm.size()),
                "this is a bug in the caller: build the Arena with a multiple of the ranks");
    Part part;
    std::int64_t const n = sharded() ? arena.padded_size() / comm.size() : arena.padded_size();
    part.begin = sharded() ? comm.rank() * n : 0;
    part.gradient = arena.gradients().narrow(0, part.begin, n);
    part.first = at::zeros({n}, arena.values().options());
    part.second = at::zeros({n}, arena.values().options());
    parts_.push_back(std::move(part));
  }
}

double ShardedAdamW::step(StepRates const& rates, Pictures pictures) {
  at::NoGradGuard const no_grad;
  auto squares = at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(comm_.device()));
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    auto& part = parts_[i];
    if (sharded()) {
      auto reduced = at::empty_like(part.gradient);
      comm_.reduce_scatter(reduced, arenas_[i].gradients(), Reduce::sum).wait();
      part.gradient.copy_(reduced);
    } else {
      comm_.all_reduce(arenas_[i].gradients(), Reduce::sum).wait();
    }
    squares.add_(at::linalg_vector_norm(part.gradient, 2, {}, false, at::kDouble).square());
  }
  if (sharded()) comm_.all_reduce(squares, Reduce::sum).wait();
  double const norm = std::sqrt(squares.item<double>());

  if (std::isfinite(norm)) {
    ++steps_.text;
    steps_.vision += pictures == Pictures::some;
    double const limit = settings_.max_grad_norm;
    double const factor = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    for (std::size_t i = 0; i < arenas_.size(); ++i) {
      if (factor < 1) parts_[i].gradient.mul_(factor);
      update(arenas_[i], parts_[i], rates, pictures);
    }
  }
  for (auto& arena : arenas_) arena.gradients().zero_();
  return norm;
}

void ShardedAdamW::update(Arena& arena, Part& part, StepRates const& rates, Pictures pictures) {
  std::int64_t const n = part.gradient.numel();
  for (auto const& span : arena.spans()) {
    std::int64_t const begin = std::max(span.begin, part.begin);
    std::int64_t const end = std::min(span.end, part.begin + n);
    bool const vision = span.rate != RateGroup::base;
    if (begin >= end || (vision && pictures == Pictures::none)) continue;
    auto const steps = static_cast<double>(vision ? steps_.vision : steps_.text);
    auto const count = at::full({}, steps, arena.values().options());
    auto view = [&](at::Tensor const& flat) {
      return flat.narrow(0, begin - part.begin, end - begin);
    };
    at::_fused_adamw_({arena.values().narrow(0, begin, end - begin)}, {view(part.gradient)},
                      {view(part.first)}, {view(part.second)}, {}, {count}, rate_of(span, rates),
                      settings_.beta1, settings_.beta2,
                      span.decay == Decay::yes ? settings_.weight_decay : 0.0, settings_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  if (sharded()) comm_.all_gather(arena.values(), arena.values().narrow(0, part.begin, n)).wait();
}

at::Tensor ShardedAdamW::gather(std::size_t i, at::Tensor const& mine) {
  auto const size = arenas_[i].size();
  if (!sharded()) return mine.narrow(0, 0, size).clone();
  auto full = at::empty({arenas_[i].padded_size()}, mine.options());
  comm_.all_gather(full, mine).wait();
  return full.narrow(0, 0, size);
}

at::Tensor ShardedAdamW::first_moment(std::size_t i) {
  return gather(i, parts_.at(i).first);
}

at::Tensor ShardedAdamW::second_moment(std::size_t i) {
  return gather(i, parts_.at(i).second);
}

void ShardedAdamW::set_moments(std::size_t i, at::Tensor const& first, at::Tensor const& second) {
  auto& part = parts_.at(i);
  auto const size = arenas_[i].size();
  VLR_REQUIRE(first.numel() == size && second.numel() == size,
              text("moments of ", first.numel(), " values for an arena of ", size),
              "this is a bug in the caller");
  std::int64_t const n = std::min(part.gradient.numel(), size - part.begin);
  if (n <= 0) return;
  part.first.narrow(0, 0, n).copy_(first.narrow(0, part.begin, n));
  part.second.narrow(0, 0, n).copy_(second.narrow(0, part.begin, n));
}

}  // namespace vlrerank
