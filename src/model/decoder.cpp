// model/decoder.cpp -- attention and MLP of a decoder layer.
#include "model/decoder.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/ops.hpp"

namespace vlrerank {

TextRope text_rope(at::Tensor const& positions, TextConfig const& config) {
  auto const half = config.head_dim / 2;
  auto frequencies = at::empty({half});
  auto axis = at::empty({half}, at::kLong);
  for (std::int64_t i = 0; i < half; ++i) {
    frequencies.mutable_data_ptr<float>()[i] = static_cast<float>(
        1.0 / std::pow(config.rope_theta,
                       static_cast<double>(2 * i) / static_cast<double>(config.head_dim)));
    bool const spatial = i % 3 != 0 && i < 3 * config.mrope_section[static_cast<size_t>(i % 3)];
    axis.mutable_data_ptr<std::int64_t>()[i] = spatial ? i % 3 : 0;
  }
  auto const device = positions.device();
  auto const angles = positions.index_select(0, axis.to(device)).t().to(at::kFloat) *
                      frequencies.to(device);  // [T, D / 2]
  return {angles.cos(), angles.sin()};
}

AttentionRuns runs_of(PackedBatch const& batch) {
  return {batch.cu_q,     batch.cu_k,      batch.cu_q_device, batch.cu_k_device,
          batch.kv_index, batch.longest_q, batch.longest_k,   Mask::causal};
}

AttentionRuns runs_of_last(PackedBatch const& batch) {
  auto const last = batch.last.cpu();
  auto const index = batch.kv_index.defined() ? batch.kv_index.cpu() : at::Tensor();
  AttentionRuns runs;
  runs.cu_q = {0};
  runs.cu_k = {0};
  runs.longest_q = 1;
  std::vector<std::int64_t> keys;
  for (std::int64_t s = 0; s < last.size(0); ++s) {
    auto const token = last.const_data_ptr<std::int64_t>()[s];
    auto const after = std::upper_bound(batch.cu_q.begin(), batch.cu_q.end(), token);
    VLR_REQUIRE(token >= 0 && after != batch.cu_q.end() && after != batch.cu_q.begin(),
                text("the scored token ", token, " is outside the batch"),
                "this is a bug in the caller: last must hold tokens of the batch");
    auto const run = static_cast<std::size_t>(after - batch.cu_q.begin()) - 1;
    auto const end = batch.cu_k[run + 1] - (batch.cu_q[run + 1] - 1 - static_cast<int>(token));
    for (auto key = batch.cu_k[run]; key < end; ++key)
      keys.push_back(index.defined() ? index.const_data_ptr<std::int64_t>()[key] : key);
    runs.cu_q.push_back(static_cast<std::int32_t>(s + 1));
    runs.cu_k.push_back(static_cast<std::int32_t>(keys.size()));
    runs.longest_k = std::max(runs.longest_k, end - batch.cu_k[run]);
  }
  auto const device = batch.last.device();
  runs.kv_index = at::tensor(keys, at::kLong).to(device);
  if (!device.is_cpu()) {
    runs.cu_q_device = at::tensor(runs.cu_q, at::kInt).to(device);
    runs.cu_k_device = at::tensor(runs.cu_k, at::kInt).to(device);
  }
  return runs;
}

void DecoderLayer::list(ParameterList& list, std::string const& prefix, TextConfig const& c) {
  auto const attention = prefix + "self_attn.";
  auto const heads = c.num_attention_heads * c.head_dim;
  auto const kv_heads = c.num_key_value_heads * c.head_dim;
  list.plain(prefix + "input_layernorm.weight", input_norm_, c.hidden_size);
  list.linear(attention + "q_proj", q_proj_, heads, c.hidden_size, false);
  list.linear(attention + "k_proj", k_proj_, kv_heads, c.hidden_size, false);
  list.linear(attention + "v_proj", v_proj_, kv_heads, c.hidden_size, false);
  list.linear(attention + "o_proj", o_proj_, c.hidden_size, heads, false);
  list.plain(attention + "q_norm.weight", q_norm_, c.head_dim);
  list.plain(attention + "k_norm.weight", k_norm_, c.head_dim);
  list.plain(prefix + "post_attention_layernorm.weight", post_norm_, c.hidden_size);
  list.linear(prefix + "mlp.gate_proj", gate_proj_, c.intermediate_size, c.hidden_size, false);
  list.linear(prefix + "mlp.up_proj", up_proj_, c.intermediate_size, c.hidden_size, false);
  list.linear(prefix + "mlp.down_proj", down_proj_, c.hidden_size, c.intermediate_size, false);
}

at::Tensor DecoderLayer::finish(at::Tensor const& residual, at::Tensor const& heads,
                                DropoutState const& dropout, TextConfig const& c) const {
  auto const hidden = add_apply(residual, o_proj_, heads.flatten(1), dropout);
  auto const normed = ops::rms_norm(hidden, post_norm_, c.rms_norm_eps);
  auto const gated =
      ops::swiglu(apply(gate_proj_, normed, dropout), apply(up_proj_, normed, dropout));
  return add_apply(hidden, down_proj_, gated, dropout);
}

at::Tensor DecoderLayer::forward(at::Tensor const& hidden, DecoderInputs const& in,
                                 TextConfig const& c) const {
  auto const normed = ops::rms_norm(hidden, input_norm_, c.rms_norm_eps);
  auto const heads = [&](Linear const& linear, std::int64_t count) {
    return apply(linear, normed, in.dropout).view({-1, count, c.head_dim});
  };
  auto const q = ops::qk_norm_rope(heads(q_proj_, c.num_attention_heads), q_norm_, in.rope.cos,
                                   in.rope.sin, c.rms_norm_eps);
  auto const k = ops::qk_norm_rope(heads(k_proj_, c.num_key_value_heads), k_norm_, in.rope.cos,
                                   in.rope.sin, c.rms_norm_eps);
  auto const v = heads(v_proj_, c.num_key_value_heads);
  auto const scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  return finish(hidden, varlen_attention(q, k, v, in.runs, scale), in.dropout, c);
}

at::Tensor DecoderLayer::forward_last(at::Tensor const& hidden, DecoderInputs const& in,
                                      TextConfig const& c) const {
  auto const normed = ops::rms_norm(hidden, input_norm_, c.rms_norm_eps);
  auto const k = ops::qk_norm_rope(
      apply(k_proj_, normed, in.dropout).view({-1, c.num_key_value_heads, c.head_dim}), k_norm_,
      in.rope.cos, in.rope.sin, c.rms_norm_eps);
  auto const v = apply(v_proj_, normed, in.dropout).view({-1, c.num_key_value_heads, c.head_dim});
  auto const q = ops::qk_norm_rope(apply(q_proj_, normed.index_select(0, in.last), in.last_dropout)
                                       .view({-1, c.num_attention_heads, c.head_dim}),
                                   q_norm_, in.last_rope.cos, in.last_rope.sin, c.rms_norm_eps);
  auto const scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  return finish(hidden.index_select(0, in.last), varlen_attention(q, k, v, in.last_runs, scale),
                in.last_dropout, c);
}

void DecoderLayer::tap(at::Tensor const& hidden, DecoderInputs const& in, TextConfig const& c,
                       std::string const& prefix, ForwardContext const& context) const {
  auto const normed = ops::rms_norm(hidden, input_norm_, c.rms_norm_eps);
  auto const q = apply(q_proj_, normed, in.dropout).view({-1, c.num_attention_heads, c.head_dim});
  auto const k = apply(k_proj_, normed, in.dropout).view({-1, c.num_key_value_heads, c.head_dim});
  auto const v = apply(v_proj_, normed, in.dropout);
  auto const q_rope = ops::qk_norm_rope(q, q_norm_, in.rope.cos, in.rope.sin, c.rms_norm_eps);
  auto const k_rope = ops::qk_norm_rope(k, k_norm_, in.rope.cos, in.rope.sin, c.rms_norm_eps);
  auto const heads = varlen_attention(q_rope, k_rope, v.view(k.sizes()), in.runs,
                                      1 / std::sqrt(static_cast<double>(c.head_dim)));
  auto const attention = apply(o_proj_, heads.flatten(1), in.dropout);
  context.tap(prefix + "input_norm", normed);
  context.tap(prefix + "q_normed", ops::rms_norm(q, q_norm_, c.rms_norm_eps));
  context.tap(prefix + "k_normed", ops::rms_norm(k, k_norm_, c.rms_norm_eps));
  context.tap(prefix + "v", v);
  context.tap(prefix + "q_rope", q_rope);
  context.tap(prefix + "k_rope", k_rope);
  context.tap(prefix + "attn_heads", heads.flatten(1));
  context.tap(prefix + "attn_out", attention);
  context.tap(prefix + "mlp_out", finish(hidden, heads, in.dropout, c) - hidden - attention);
}

bool DecoderLayer::trains() const {
  bool any = false;
  for (auto const* linear :
       {&q_proj_, &k_proj_, &v_proj_, &o_proj_, &gate_proj_, &up_proj_, &down_proj_})
    any |= vlrerank::trains(*linear);
  for (auto const* norm : {&input_norm_, &post_norm_, &q_norm_, &k_norm_})
    any |= norm->requires_grad();
  return any;
}

}  // namespace vlrerank
