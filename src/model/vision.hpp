// model/vision.hpp -- the vision tower: patches to features for the decoder.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/attention.hpp"
#include "loader/batch.hpp"
#include "model/config.hpp"
#include "model/context.hpp"
#include "model/linear.hpp"
#include "model/parameters.hpp"
#include "model/segments.hpp"

namespace vlrerank {

struct LayerNorm {
  at::Tensor weight;
  at::Tensor bias;
};

/// What the grids of a batch mean for the tower. P patches, in patch order: blocks of 2 x 2.
struct VisionGeometry {
  at::Tensor table_rows;     // [P, 4] int64: rows of the position table around a patch
  at::Tensor table_weights;  // [P, 4] float32: bilinear, aligned corners
  at::Tensor cos;            // [P, D / 2] float32
  at::Tensor sin;
  AttentionRuns runs;  // one a frame: full attention inside, none across
};
VisionGeometry vision_geometry(std::vector<Grid> const& grids, VisionConfig const& config,
                               at::Device device);

/// Features at the merged patches: for the embeddings, and for the first decoder layers.
struct VisionFeatures {
  at::Tensor merged;                  // [P / 4, H]
  std::vector<at::Tensor> deepstack;  // one a deepstack index
};

class VisionTower {
 public:
  explicit VisionTower(VisionConfig config);
  void list(ParameterList& list);
  void set_visitor(LayerVisitor visitor) { visitor_ = std::move(visitor); }

  bool tower_trains() const;
  bool aligner_trains() const;

  /// @param pixels  [P, 1536] uint8; keeps what backward() needs when context.training and
  ///                anything here trains
  VisionFeatures forward(at::Tensor const& pixels, std::vector<Grid> const& grids,
                         ForwardContext const& context);
  /// @param grads  of forward()'s features; undefined ones count as 0
  void backward(VisionFeatures const& grads);

 private:
  struct Block {
    LayerNorm norm1, norm2;
    Linear qkv, proj, fc1, fc2;
  };
  struct Merger {
    LayerNorm norm;
    Linear fc1, fc2;
  };
  at::Tensor run_patches(at::Tensor const& pixels, VisionGeometry const& geometry,
                         ForwardContext const& context) const;
  at::Tensor run_block(Block const& block, at::Tensor const& hidden, VisionGeometry const& geometry,
                       DropoutState const& dropout) const;
  at::Tensor run_merger(Merger const& merger, at::Tensor const& hidden, bool norm_first,
                        DropoutState const& dropout) const;
  void tap_block(Block const& block, at::Tensor const& hidden, VisionGeometry const& geometry,
                 DropoutState const& dropout, ForwardContext const& context) const;
  bool drops() const;

  VisionConfig config_;
  LayerVisitor visitor_ = [](ModelPart, int) {};
  at::Tensor patch_weight_, patch_bias_, positions_;
  std::vector<Block> blocks_;
  Merger merger_;
  std::vector<Merger> deepstack_mergers_;

  Segment patch_segment_;
  std::vector<Segment> block_segments_;
  Segment merger_segment_;
  std::vector<Segment> deepstack_segments_;
};

}  // namespace vlrerank
