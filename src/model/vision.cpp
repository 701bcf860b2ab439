// model/vision.cpp -- patch embedding, blocks, mergers, and the chain of their graphs.
#include "model/vision.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/ops.hpp"

namespace vlrerank {
namespace {

constexpr double norm_eps = 1e-6;

at::Tensor layer_norm(at::Tensor const& x, LayerNorm const& norm) {
  return at::layer_norm(x, {x.size(-1)}, norm.weight, norm.bias, norm_eps);
}

bool trains(LayerNorm const& norm) {
  return norm.weight.requires_grad() || norm.bias.requires_grad();
}

/// A name for each patch that depends on its picture and place alone, so that dropout masks do
/// not depend on the batch: FNV-1a over the picture's grid and pixels, then the patch's number.
at::Tensor patch_keys(at::Tensor const& pixels, std::vector<Grid> const& grids) {
  auto const bytes = pixels.cpu().contiguous();
  auto keys = at::empty({bytes.size(0)}, at::kLong);
  auto* const to = keys.mutable_data_ptr<std::int64_t>();
  auto const* const from = bytes.const_data_ptr<std::uint8_t>();
  std::int64_t patch = 0;
  for (auto const& grid : grids) {
    std::uint64_t hash = 0xcbf29ce484222325;
    auto const mix = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    for (auto const size : {grid.t, grid.h, grid.w}) mix(static_cast<std::uint64_t>(size));
    auto const count = std::int64_t{grid.t} * grid.h * grid.w;
    auto const begin = patch * bytes.size(1), end = (patch + count) * bytes.size(1);
    for (auto at = begin; at + 8 <= end; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, sizeof word);
      mix(word);
      hash ^= hash >> 29;
    }
    for (std::int64_t i = 0; i < count; ++i)
      to[patch + i] =
          static_cast<std::int64_t>((hash + static_cast<std::uint64_t>(i)) * 0x9E3779B97F4A7C15);
    patch += count;
  }
  return keys.to(pixels.device());
}

/// Where a row or column lies in the position table: two neighbours and the share of the second.
struct Between {
  std::int64_t low, high;
  float share;
};
Between between(std::int64_t place, std::int64_t places, std::int64_t side) {
  float const at = places > 1 ? static_cast<float>(place) * static_cast<float>(side - 1) /
                                    static_cast<float>(places - 1)
                              : 0.0f;
  auto const low = std::min(static_cast<std::int64_t>(at), side - 1);
  return {low, std::min(low + 1, side - 1), at - static_cast<float>(low)};
}

}  // namespace

VisionGeometry vision_geometry(std::vector<Grid> const& grids, VisionConfig const& config,
                               at::Device device) {
  std::int64_t patches = 0;
  for (auto const& grid : grids) patches += std::int64_t{grid.t} * grid.h * grid.w;
  auto const side = std::llround(std::sqrt(static_cast<double>(config.num_position_embeddings)));
  auto const quarter = config.head_dim() / 4;
  auto rows = at::empty({patches, 4}, at::kLong);
  auto weights = at::empty({patches, 4});
  auto angles = at::empty({patches, 2 * quarter});
  auto* row = rows.mutable_data_ptr<std::int64_t>();
  auto* weight = weights.mutable_data_ptr<float>();
  auto* angle = angles.mutable_data_ptr<float>();
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < quarter; ++i)
    frequencies.push_back(static_cast<float>(
        1.0 / std::pow(config.rope_theta,
                       static_cast<double>(2 * i) / static_cast<double>(config.head_dim() / 2))));
  VisionGeometry geometry;
  auto& runs = geometry.runs;
  runs.mask = Mask::full;
  runs.cu_q = {0};
  auto const merge = config.spatial_merge_size;
  auto const patch = [&](std::int64_t y, std::int64_t x, Grid const& grid) {
    auto const in_y = between(y, grid.h, side), in_x = between(x, grid.w, side);
    *row++ = in_y.low * side + in_x.low;
    *row++ = in_y.low * side + in_x.high;
    *row++ = in_y.high * side + in_x.low;
    *row++ = in_y.high * side + in_x.high;
    *weight++ = (1 - in_y.share) * (1 - in_x.share);
    *weight++ = (1 - in_y.share) * in_x.share;
    *weight++ = in_y.share * (1 - in_x.share);
    *weight++ = in_y.share * in_x.share;
    for (auto const frequency : frequencies) *angle++ = static_cast<float>(y) * frequency;
    for (auto const frequency : frequencies) *angle++ = static_cast<float>(x) * frequency;
  };
  for (auto const& grid : grids) {
    for (std::int64_t frame = 0; frame < grid.t; ++frame) {
      for (std::int64_t y = 0; y < grid.h; y += merge)
        for (std::int64_t x = 0; x < grid.w; x += merge)
          for (std::int64_t in = 0; in < merge * merge; ++in)
            patch(y + in / merge, x + in % merge, grid);
      runs.cu_q.push_back(runs.cu_q.back() + grid.h * grid.w);
      runs.longest_q = std::max(runs.longest_q, grid.h * grid.w);
    }
  }
  runs.cu_k = runs.cu_q;
  runs.longest_k = runs.longest_q;
  if (!device.is_cpu())
    runs.cu_q_device = runs.cu_k_device = at::tensor(runs.cu_q, at::kInt).to(device);
  geometry.table_rows = rows.to(device);
  geometry.table_weights = weights.to(device);
  geometry.cos = angles.cos().to(device);
  geometry.sin = angles.sin().to(device);
  return geometry;
}

VisionTower::VisionTower(VisionConfig config)
    : config_(std::move(config)),
      blocks_(static_cast<std::size_t>(config_.depth)),
      deepstack_mergers_(config_.deepstack_visual_indexes.size()),
      block_segments_(blocks_.size()),
      deepstack_segments_(deepstack_mergers_.size()) {}

void VisionTower::list(ParameterList& list) {
  std::string const prefix = "model.visual.";
  auto const hidden = config_.hidden_size;
  auto const norm = [&list](std::string const& name, LayerNorm& slot, std::int64_t size) {
    list.plain(name + ".weight", slot.weight, size);
    list.plain(name + ".bias", slot.bias, size);
  };
  list.set(ModelPart::vision, -1);
  list.weight(prefix + "patch_embed.proj.weight", patch_weight_,
              {hidden, config_.in_channels, config_.temporal_patch_size, config_.patch_size,
               config_.patch_size});
  list.plain(prefix + "patch_embed.proj.bias", patch_bias_, hidden);
  list.weight(prefix + "pos_embed.weight", positions_, {config_.num_position_embeddings, hidden});
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    list.set(ModelPart::vision, static_cast<int>(b));
    auto const at = prefix + "blocks." + std::to_string(b) + ".";
    auto& block = blocks_[b];
    norm(at + "norm1", block.norm1, hidden);
    norm(at + "norm2", block.norm2, hidden);
    list.linear(at + "attn.qkv", block.qkv, 3 * hidden, hidden, true);
    list.linear(at + "attn.proj", block.proj, hidden, hidden, true);
    list.linear(at + "mlp.linear_fc1", block.fc1, config_.intermediate_size, hidden, true);
    list.linear(at + "mlp.linear_fc2", block.fc2, hidden, config_.intermediate_size, true);
  }
  list.set(ModelPart::aligner, -1);
  auto const merger = [&](std::string const& at, Merger& slot, std::int64_t norm_size) {
    norm(at + "norm", slot.norm, norm_size);
    list.linear(at + "linear_fc1", slot.fc1, config_.merged_size(), config_.merged_size(), true);
    list.linear(at + "linear_fc2", slot.fc2, config_.out_hidden_size, config_.merged_size(), true);
  };
  merger(prefix + "merger.", merger_, hidden);
  for (std::size_t i = 0; i < deepstack_mergers_.size(); ++i)
    merger(prefix + "deepstack_merger_list." + std::to_string(i) + ".", deepstack_mergers_[i],
           config_.merged_size());
}

bool VisionTower::tower_trains() const {
  bool any =
      patch_weight_.requires_grad() || patch_bias_.requires_grad() || positions_.requires_grad();
  for (auto const& b : blocks_) {
    any |= trains(b.norm1) || trains(b.norm2);
    for (auto const* linear : {&b.qkv, &b.proj, &b.fc1, &b.fc2}) any |= vlrerank::trains(*linear);
  }
  return any;
}

bool VisionTower::aligner_trains() const {
  auto const merger_trains = [](Merger const& m) {
    return trains(m.norm) || vlrerank::trains(m.fc1) || vlrerank::trains(m.fc2);
  };
  return merger_trains(merger_) ||
         std::any_of(deepstack_mergers_.begin(), deepstack_mergers_.end(), merger_trains);
}

bool VisionTower::drops() const {
  auto const linear_drops = [](Linear const& l) { return l.lora && l.lora->dropout > 0; };
  bool any = linear_drops(merger_.fc1) || linear_drops(merger_.fc2);
  for (auto const& m : deepstack_mergers_) any |= linear_drops(m.fc1) || linear_drops(m.fc2);
  for (auto const& b : blocks_)
    any |=
        linear_drops(b.qkv) || linear_drops(b.proj) || linear_drops(b.fc1) || linear_drops(b.fc2);
  return any;
}

at::Tensor VisionTower::run_patches(at::Tensor const& pixels, VisionGeometry const& geometry,
                                    ForwardContext const& context) const {
  auto const values = pixels.to(at::kFloat).sub_(127.5).div_(127.5).to(patch_weight_.scalar_type());
  auto const embedded = at::addmm(patch_bias_, values, patch_weight_.flatten(1).t());
  auto const corners = at::embedding(positions_, geometry.table_rows);  // [P, 4, hidden]
  auto const weights = geometry.table_weights.unsqueeze(1).to(corners.scalar_type());
  auto const places = at::bmm(weights, corners).squeeze(1);
  if (context.tap) {
    context.tap("vision.patch_embed", embedded);
    context.tap("vision.pos_embed", places);
    context.tap("vision.rope_cos", at::cat({geometry.cos, geometry.cos}, 1));
    context.tap("vision.rope_sin", at::cat({geometry.sin, geometry.sin}, 1));
  }
  return embedded + places;
}

at::Tensor VisionTower::run_block(Block const& block, at::Tensor const& hidden,
                                  VisionGeometry const& geometry,
                                  DropoutState const& dropout) const {
  auto const qkv = apply(block.qkv, layer_norm(hidden, block.norm1), dropout)
                       .view({-1, 3, config_.num_heads, config_.head_dim()})
                       .unbind(1);
  auto const heads = varlen_attention(
      ops::rope(qkv[0], geometry.cos, geometry.sin), ops::rope(qkv[1], geometry.cos, geometry.sin),
      qkv[2], geometry.runs, 1 / std::sqrt(static_cast<double>(config_.head_dim())));
  auto const middle = add_apply(hidden, block.proj, heads.flatten(1), dropout);
  auto const wide = apply(block.fc1, layer_norm(middle, block.norm2), dropout);
  return add_apply(middle, block.fc2, at::gelu(wide, "tanh"), dropout);
}

at::Tensor VisionTower::run_merger(Merger const& merger, at::Tensor const& hidden, bool norm_first,
                                   DropoutState const& dropout) const {
  auto const merged = config_.merged_size();
  auto const rows = norm_first ? layer_norm(hidden, merger.norm).view({-1, merged})
                               : layer_norm(hidden.view({-1, merged}), merger.norm);
  return apply(merger.fc2, at::gelu(apply(merger.fc1, rows, dropout)), dropout);
}

void VisionTower::tap_block(Block const& block, at::Tensor const& hidden,
                            VisionGeometry const& geometry, DropoutState const& dropout,
                            ForwardContext const& context) const {
  auto const normed = layer_norm(hidden, block.norm1);
  auto const qkv = apply(block.qkv, normed, dropout);
  auto const parts = qkv.view({-1, 3, config_.num_heads, config_.head_dim()}).unbind(1);
  auto const heads =
      varlen_attention(ops::rope(parts[0], geometry.cos, geometry.sin),
                       ops::rope(parts[1], geometry.cos, geometry.sin), parts[2], geometry.runs,
                       1 / std::sqrt(static_cast<double>(config_.head_dim())));
  auto const attention = apply(block.proj, heads.flatten(1), dropout);
  context.tap("vision.block0.norm1", normed);
  context.tap("vision.block0.qkv", qkv);
  context.tap("vision.block0.attn_heads", heads.flatten(1));
  context.tap("vision.block0.attn_out", attention);
  context.tap("vision.block0.mlp_out",
              run_block(block, hidden, geometry, dropout) - hidden - attention);
}

VisionFeatures VisionTower::forward(at::Tensor const& pixels, std::vector<Grid> const& grids,
                                    ForwardContext const& context) {
  at::NoGradGuard const off;
  auto const geometry = vision_geometry(grids, config_, pixels.device());
  DropoutState dropout, merged_dropout;
  if (context.training && drops()) {
    auto const keys = patch_keys(pixels, grids);
    dropout = {true, context.seed, context.step, keys};
    auto const unit = config_.spatial_merge_size * config_.spatial_merge_size;
    merged_dropout = {true, context.seed, context.step, keys.view({-1, unit}).select(1, 0)};
  }
  bool const tower = context.training && tower_trains();
  bool const aligner = context.training && (tower || aligner_trains());
  auto const keep = [&](std::size_t b) {
    return !tower ? Keep::nothing
                  : (static_cast<std::int64_t>(b) < context.recomputed_layers ? Keep::input
                                                                              : Keep::graph);
  };
  auto const keep_aligner = aligner ? Keep::graph : Keep::nothing;

  visitor_(ModelPart::vision, -1);
  auto hidden = patch_segment_.forward(
      [this, geometry, context](at::Tensor const& x) { return run_patches(x, geometry, context); },
      pixels, false, tower ? Keep::graph : Keep::nothing);
  VisionFeatures features;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    visitor_(ModelPart::vision, static_cast<int>(b));
    if (context.tap && b == 0) tap_block(blocks_[b], hidden, geometry, dropout, context);
    hidden = block_segments_[b].forward(
        [this, b, geometry, dropout](at::Tensor const& x) {
          return run_block(blocks_[b], x, geometry, dropout);
        },
        hidden, tower, keep(b));
    if (context.tap) context.tap("vision.block" + std::to_string(b), hidden);
    auto const& indexes = config_.deepstack_visual_indexes;
    auto const found = std::find(indexes.begin(), indexes.end(), static_cast<std::int64_t>(b));
    if (found == indexes.end()) continue;
    auto const i = static_cast<std::size_t>(found - indexes.begin());
    visitor_(ModelPart::aligner, -1);
    features.deepstack.push_back(deepstack_segments_[i].forward(
        [this, i, merged_dropout](at::Tensor const& x) {
          return run_merger(deepstack_mergers_[i], x, false, merged_dropout);
        },
        hidden, tower, keep_aligner));
    if (context.tap) context.tap("vision.deepstack" + std::to_string(i), features.deepstack.back());
  }
  visitor_(ModelPart::aligner, -1);
  features.merged = merger_segment_.forward(
      [this, merged_dropout](at::Tensor const& x) {
        return run_merger(merger_, x, true, merged_dropout);
      },
      hidden, tower, keep_aligner);
  if (context.tap) context.tap("vision.merged", features.merged);
  return features;
}

void VisionTower::backward(VisionFeatures const& grads) {
  if (!merger_segment_.waits()) return;
  visitor_(ModelPart::aligner, -1);
  auto grad = merger_segment_.backward(grads.merged);
  bool const tower = patch_segment_.waits();
  for (auto b = blocks_.size(); b-- > 0;) {
    auto const& indexes = config_.deepstack_visual_indexes;
    auto const found = std::find(indexes.begin(), indexes.end(), static_cast<std::int64_t>(b));
    if (found != indexes.end()) {
      auto const i = static_cast<std::size_t>(found - indexes.begin());
      auto segment = std::exchange(deepstack_segments_[i], Segment());
      if (i < grads.deepstack.size() && grads.deepstack[i].defined()) {
        visitor_(ModelPart::aligner, -1);
        auto const more = segment.backward(grads.deepstack[i]);
        if (tower) grad = grad + more;
      }
    }
    if (!tower) continue;
    visitor_(ModelPart::vision, static_cast<int>(b));
    grad = block_segments_[b].backward(grad);
  }
  if (!tower) return;
  visitor_(ModelPart::vision, -1);
  patch_segment_.backward(grad);
}

}  // namespace vlrerank
