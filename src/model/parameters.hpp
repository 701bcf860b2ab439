// model/parameters.hpp -- every number of the model by its name in the checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/context.hpp"
#include "model/linear.hpp"

namespace vlrerank {

struct Parameter {
  std::string name;                 // as in the published checkpoints
  at::Tensor* slot = nullptr;       // where the model reads it; may be bound to another tensor
  std::vector<std::int64_t> shape;  // known before loading
  int layer = -1;                   // decoder layer or vision block; -1: none
  ModelPart part = ModelPart::llm;
  bool decay = true;  // weight decay applies: no bias, no norm
};

/// Collects parameters and linears while the model's pieces name them.
class ParameterList {
 public:
  void set(ModelPart part, int layer) {
    part_ = part;
    layer_ = layer;
  }
  void weight(std::string name, at::Tensor& slot, std::vector<std::int64_t> shape) {
    parameters.push_back({std::move(name), &slot, std::move(shape), layer_, part_, true});
  }
  /// A norm's weight or any bias: not decayed.
  void plain(std::string name, at::Tensor& slot, std::int64_t size) {
    parameters.push_back({std::move(name), &slot, {size}, layer_, part_, false});
  }
  void linear(std::string const& name, Linear& slot, std::int64_t out, std::int64_t in,
              bool has_bias) {
    slot.name = name;
    slot.in = in;
    slot.out = out;
    weight(name + ".weight", slot.weight, {out, in});
    if (has_bias) plain(name + ".bias", slot.bias, out);
    linears.push_back(&slot);
  }

  std::vector<Parameter> parameters;
  std::vector<Linear*> linears;

 private:
  ModelPart part_ = ModelPart::llm;
  int layer_ = -1;
};

}  // namespace vlrerank
