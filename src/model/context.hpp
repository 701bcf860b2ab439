// model/context.hpp -- what one pass through the model is told, and what may watch it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace vlrerank {

/// Which piece of the model a parameter belongs to.
enum class ModelPart { embedding, llm, head, vision, aligner };

struct ForwardContext {
  bool training = false;  ///< keep what backward() needs, and apply dropout
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t recomputed_layers = 0;  ///< first decoder layers (and vision blocks) that run twice
  /// Called with every intermediate by its golden name; switches off shortcuts that would leave
  /// values out. For tests.
  std::function<void(std::string_view name, at::Tensor const& value)> tap;
};

/// Called before a piece of the model runs, forward and backward: the place to gather its weights.
/// layer: decoder layer or vision block, -1 for the part's other weights.
using LayerVisitor = std::function<void(ModelPart part, int layer)>;

}  // namespace vlrerank
