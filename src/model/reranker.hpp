// model/reranker.hpp -- Qwen3-VL with the yes/no score: forward over packed rows, then backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loader/batch.hpp"
#include "model/config.hpp"
#include "model/context.hpp"
#include "model/decoder.hpp"
#include "model/linear.hpp"
#include "model/parameters.hpp"
#include "model/segments.hpp"
#include "model/vision.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {

/// The model as a chain of separate autograd graphs, one a layer.
///
/// What trains is what requires a gradient: bind a leaf to a parameter's slot, or give a linear an
/// adapter. Gradients are added in place to the .grad that is already there. The scoring rule is
/// s = (w_yes - w_no) . norm(h[last]) in float32.
class Reranker {
 public:
  explicit Reranker(ModelConfig config);
  Reranker(Reranker const&) = delete;
  Reranker& operator=(Reranker const&) = delete;

  ModelConfig const& config() const { return config_; }
  /// Every parameter once; a tied lm_head is not listed.
  std::vector<Parameter> const& parameters() const { return list_.parameters; }
  /// Every linear that may take an adapter: decoder, vision blocks, mergers.
  std::vector<Linear*> const& linears() const { return list_.linears; }

  /// Copies all parameters from files. Throws Error (exit 3) when any is missing or has another
  /// shape, naming the first five of each. @return names in the files that the model has no use for
  std::vector<std::string> load(TensorFiles const& files, at::ScalarType dtype, at::Device device);
  /// Random weights, as a new model is made: normal with the config's initializer_range, norms 1,
  /// biases 0. The same for the same seed.
  /// @param embedding_range  standard deviation of the token embedding
  void randomize(std::uint64_t seed, double embedding_range, at::ScalarType dtype);
  /// Names and tensors, for saving.
  NamedTensors state() const;

  /// Token ids whose rows of lm_head make the score. Must be called before forward().
  void set_answer_ids(std::int64_t yes, std::int64_t no);
  void set_visitor(LayerVisitor visitor);

  /// @return  scores [S] float32, detached
  at::Tensor forward(PackedBatch const& batch, ForwardContext const& context);
  /// Adds the gradients of sum(dscores * scores of the last forward()) to the .grad of all that
  /// trains, and frees what that pass kept. Needs a forward() with context.training.
  /// @param dscores  [S] float32
  void backward(at::Tensor const& dscores);

 private:
  at::Tensor embed(PackedBatch const& batch, VisionFeatures const& features) const;
  at::Tensor score(at::Tensor const& hidden, ForwardContext const& context, bool needs_grad);
  at::Tensor const& head_weight() const;

  ModelConfig config_;
  std::int64_t yes_ = -1;
  std::int64_t no_ = -1;
  LayerVisitor visitor_ = [](ModelPart, int) {};
  at::Tensor embedding_, norm_, lm_head_;
  std::vector<DecoderLayer> layers_;
  VisionTower vision_;
  ParameterList list_;

  std::vector<Segment> segments_;
  Segment head_segment_;
  // Of the last training pass:
  PackedBatch batch_;
  bool pruned_ = false;      // the last layer ran for the scored tokens alone
  bool waits_ = false;       // backward() is due
  std::int64_t lowest_ = 0;  // first layer that backward() reaches
  bool input_needs_grad_ = false;
  at::Tensor head_row_;  // leaf [H] float32: w_yes - w_no
};

}  // namespace vlrerank
