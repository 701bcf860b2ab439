// params/arena.hpp -- trainable numbers of one unit (a decoder layer, the rest) in one flat buffer.
// Every trainable tensor is a view of it, so that reductions, clipping, the optimizer and
// checkpoints each touch one tensor per unit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vlrerank {

/// Which learning rate a tensor follows.
enum class RateGroup { base, vision, aligner };
enum class Decay { no, yes };

/// Where one tensor lies in the flat buffer; independent of the number of ranks.
struct Slice {
  std::string name;  // as it is saved, e.g. "base_model.model. ... .q_proj.lora_A.weight"
  std::vector<std::int64_t> shape;
  RateGroup rate = RateGroup::base;
  Decay decay = Decay::yes;
  std::int64_t offset = 0;  // elements, assigned by Arena
  std::int64_t numel = 0;   // assigned by Arena
};

/// Neighbouring elements with equal learning rate and decay.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  RateGroup rate = RateGroup::base;
  Decay decay = Decay::yes;
};

/// Owns the trainable values and their gradients as two flat float32 tensors.
class Arena {
 public:
  /// @param slices  names and shapes; sorted here by rate and decay (stable), offsets assigned
  /// @param multiple  the length is rounded up to this (ranks x 128 keeps shards aligned)
  Arena(std::vector<Slice> slices, std::int64_t multiple, at::Device device);

  /// The leaf of slice i: float32, requires_grad, its .grad a view of gradients().
  at::Tensor parameter(std::size_t i) const { return leaves_.at(i); }
  at::Tensor values() const { return values_; }        // [padded]
  at::Tensor gradients() const { return gradients_; }  // [padded]
  std::vector<Slice> const& slices() const { return slices_; }
  std::vector<Span> const& spans() const { return spans_; }
  std::int64_t padded_size() const { return values_.numel(); }
  /// Elements that belong to a slice, without padding.
  std::int64_t size() const { return size_; }

 private:
  std::vector<Slice> slices_;
  std::vector<Span> spans_;
  std::int64_t size_ = 0;
  at::Tensor values_;
  at::Tensor gradients_;
  std::vector<at::Tensor> leaves_;
};

}  // namespace vlrerank
