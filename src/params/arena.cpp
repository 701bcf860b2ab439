// params/arena.cpp -- laying out the flat buffer.
#include "params/arena.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

namespace vlrerank {

Arena::Arena(std::vector<Slice> slices, std::int64_t multiple, at::Device device)
    : slices_(std::move(slices)) {
  std::stable_sort(slices_.begin(), slices_.end(), [](auto const& a, auto const& b) {
    return std::tuple(a.rate, a.decay) < std::tuple(b.rate, b.decay);
  });
  for (auto& s : slices_) {
    s.numel = 1;
    for (auto const extent : s.shape) s.numel *= extent;
    s.offset = size_;
    size_ += s.numel;
    if (!spans_.empty() && spans_.back().rate == s.rate && spans_.back().decay == s.decay)
      spans_.back().end = size_;
    else
      spans_.push_back({s.offset, size_, s.rate, s.decay});
  }
  std::int64_t const padded = (size_ + multiple - 1) / multiple * multiple;
  auto const options = at::TensorOptions().dtype(at::kFloat).device(device);
  values_ = at::zeros({padded}, options);
  gradients_ = at::zeros({padded}, options);
  for (auto const& s : slices_) {
    auto view = [&](at::Tensor const& flat) {
      return flat.narrow(0, s.offset, s.numel).view(s.shape);
    };
    auto leaf = view(values_).detach();
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = view(gradients_);  // backward accumulates straight into gradients_
    leaves_.push_back(std::move(leaf));
  }
}

}  // namespace vlrerank
