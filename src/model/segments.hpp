// model/segments.hpp -- one piece of the model as an autograd graph of its own.
// Cutting the graph at the residual stream lets each layer be kept or recomputed by itself, and
// gives the caller a place to fetch weights between two layers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <utility>

namespace vlrerank {

enum class Keep { graph, input, nothing };

/// A function of one tensor that runs forward, then once backward.
class Segment {
 public:
  using Function = std::function<at::Tensor(at::Tensor const& input)>;

  /// @param needs_grad  whether backward() must return the gradient of the input
  /// @param keep        the whole graph; the input alone, so that the function runs again in
  ///                    backward() (bitwise equal when it is deterministic); or nothing
  /// @return            the result, detached
  at::Tensor forward(Function function, at::Tensor const& input, bool needs_grad, Keep keep) {
    auto leaf = input.detach().set_requires_grad(needs_grad && keep != Keep::nothing);
    at::Tensor output;
    {
      at::AutoGradMode const record(keep == Keep::graph);
      output = function(leaf);
    }
    auto result = output.detach();
    *this = Segment();
    if (keep != Keep::nothing) input_ = std::move(leaf);
    if (keep == Keep::graph) output_ = std::move(output);
    if (keep == Keep::input) function_ = std::move(function);
    return result;
  }

  /// Adds to the .grad of the parameters used and frees what was kept.
  /// @return  the gradient of the input; undefined unless needed
  at::Tensor backward(at::Tensor const& grad) {
    auto segment = std::exchange(*this, Segment());
    if (!segment.output_.defined()) {
      at::AutoGradMode const record(true);
      segment.output_ = segment.function_(segment.input_);
    }
    if (segment.output_.requires_grad()) torch::autograd::backward({segment.output_}, {grad});
    return segment.input_.grad();
  }

  /// Whether backward() is due.
  bool waits() const { return input_.defined(); }

 private:
  at::Tensor input_;
  at::Tensor output_;  // undefined when the function is to run again
  Function function_;
};

}  // namespace vlrerank
