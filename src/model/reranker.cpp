// model/reranker.cpp -- the pass through the model and back.
#include "model/reranker.hpp"

#include <ATen/ATen.h>

#include <memory>

#include "core/error.hpp"
#include "kernels/ops.hpp"
#include "kernels/rows.hpp"

namespace vlrerank {
namespace {

/// The gradient tensor of a leaf, made on first use.
at::Tensor& gradient_of(at::Tensor const& leaf) {
  auto& grad = leaf.mutable_grad();
  if (!grad.defined()) grad = at::zeros_like(leaf);
  return grad;
}

/// Adds a deepstack level to the residual stream at the visual tokens. hidden is not shared.
void add_visual(at::Tensor& hidden, PackedBatch const& batch, at::Tensor const& feature) {
  ops::add_rows_(hidden, batch.visual_token, feature.index_select(0, batch.visual_source));
}

/// The gradient of the features [P / 4, H] from that of the tokens that took them.
at::Tensor visual_gradient(at::Tensor const& grad, PackedBatch const& batch) {
  auto result = at::zeros({batch.pixels.size(0) / 4, grad.size(1)}, grad.options());
  ops::add_rows_(result, batch.visual_source, grad.index_select(0, batch.visual_token));
  return result;
}

}  // namespace

Reranker::Reranker(ModelConfig config)
    : config_(std::move(config)),
      layers_(static_cast<std::size_t>(config_.text.num_hidden_layers)),
      vision_(config_.vision),
      segments_(layers_.size()) {
  std::string const prefix = "model.language_model.";
  list_.set(ModelPart::embedding, -1);
  list_.weight(prefix + "embed_tokens.weight", embedding_,
               {config_.text.vocab_size, config_.text.hidden_size});
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    list_.set(ModelPart::llm, static_cast<int>(l));
    layers_[l].list(list_, prefix + "layers." + std::to_string(l) + ".", config_.text);
  }
  list_.set(ModelPart::head, -1);
  list_.plain(prefix + "norm.weight", norm_, config_.text.hidden_size);
  if (!config_.tie_word_embeddings)
    list_.weight("lm_head.weight", lm_head_, {config_.text.vocab_size, config_.text.hidden_size});
  vision_.list(list_);
}

void Reranker::set_answer_ids(std::int64_t yes, std::int64_t no) {
  auto const vocabulary = config_.text.vocab_size;
  VLR_INPUT(
      yes >= 0 && yes < vocabulary && no >= 0 && no < vocabulary && yes != no,
      text("the answers' token ids ", yes, " and ", no, " do not fit a vocabulary of ", vocabulary),
      "use the tokenizer that belongs to the model");
  yes_ = yes;
  no_ = no;
}

void Reranker::set_visitor(LayerVisitor visitor) {
  visitor_ = visitor ? std::move(visitor) : [](ModelPart, int) {};
  vision_.set_visitor(visitor_);
}

at::Tensor const& Reranker::head_weight() const {
  return config_.tie_word_embeddings ? embedding_ : lm_head_;
}

at::Tensor Reranker::embed(PackedBatch const& batch, VisionFeatures const& features) const {
  auto hidden = embedding_.index_select(0, batch.ids);
  if (features.merged.defined())
    hidden.index_copy_(0, batch.visual_token, features.merged.index_select(0, batch.visual_source));
  return hidden;
}

at::Tensor Reranker::forward(PackedBatch const& batch, ForwardContext const& context) {
  VLR_REQUIRE(yes_ >= 0 && embedding_.defined(), "forward() of a model without weights or answers",
              "this is a bug in the caller: load() and set_answer_ids() come first");
  at::NoGradGuard const off;
  auto const& c = config_.text;
  auto const layers = static_cast<std::int64_t>(layers_.size());
  bool const pictures = batch.pixels.defined() && batch.pixels.size(0) > 0;
  input_needs_grad_ =
      context.training && (embedding_.requires_grad() ||
                           (pictures && (vision_.tower_trains() || vision_.aligner_trains())));
  lowest_ = context.training ? 0 : layers;
  while (!input_needs_grad_ && lowest_ < layers &&
         !layers_[static_cast<std::size_t>(lowest_)].trains())
    ++lowest_;
  pruned_ = !context.tap;

  VisionFeatures features;
  if (pictures) features = vision_.forward(batch.pixels, batch.grids, context);
  visitor_(ModelPart::embedding, -1);
  auto hidden = embed(batch, features);

  auto inputs = std::make_shared<DecoderInputs>();
  inputs->rope = text_rope(batch.positions, c);
  inputs->runs = runs_of(batch);
  inputs->dropout = {context.training, context.seed, context.step, batch.token_key};
  inputs->last = batch.last;
  if (pruned_) {
    inputs->last_runs = runs_of_last(batch);
    inputs->last_rope = {inputs->rope.cos.index_select(0, batch.last),
                         inputs->rope.sin.index_select(0, batch.last)};
    inputs->last_dropout = inputs->dropout;
    if (context.training)
      inputs->last_dropout.token_key = batch.token_key.index_select(0, batch.last);
  }
  if (context.tap) {
    context.tap("text.rope_cos", at::cat({inputs->rope.cos, inputs->rope.cos}, 1));
    context.tap("text.rope_sin", at::cat({inputs->rope.sin, inputs->rope.sin}, 1));
    layers_.front().tap(hidden, *inputs, c, "text.layer0.", context);
  }
  for (std::int64_t l = 0; l < layers; ++l) {
    auto const at = static_cast<std::size_t>(l);
    visitor_(ModelPart::llm, static_cast<int>(l));
    if (context.tap) context.tap("text.hidden" + std::to_string(l), hidden);
    bool const last = pruned_ && l == layers - 1;
    auto const keep =
        l < lowest_ ? Keep::nothing : (l < context.recomputed_layers ? Keep::input : Keep::graph);
    hidden = segments_[at].forward(
        [this, inputs, at, last](at::Tensor const& x) {
          return last ? layers_[at].forward_last(x, *inputs, config_.text)
                      : layers_[at].forward(x, *inputs, config_.text);
        },
        hidden, l > lowest_ || input_needs_grad_, keep);
    if (context.tap && l == 0) context.tap("text.layer0_out", hidden.clone());
    if (!last && at < features.deepstack.size()) add_visual(hidden, batch, features.deepstack[at]);
  }
  if (context.tap) context.tap("text.hidden" + std::to_string(layers), hidden);
  if (context.tap) context.tap("text.last_hidden", ops::rms_norm(hidden, norm_, c.rms_norm_eps));
  if (!pruned_) hidden = hidden.index_select(0, batch.last);
  waits_ = context.training;
  if (context.training) batch_ = batch;
  return score(hidden, context, lowest_ < layers || input_needs_grad_);
}

at::Tensor Reranker::score(at::Tensor const& hidden, ForwardContext const& context,
                           bool needs_grad) {
  visitor_(ModelPart::head, -1);
  auto const answers = at::tensor({yes_, no_}, at::kLong).to(hidden.device());
  auto const rows = head_weight().detach().index_select(0, answers).to(at::kFloat);
  head_row_ =
      (rows[0] - rows[1]).set_requires_grad(context.training && head_weight().requires_grad());
  if (context.tap) {
    auto const normed =
        ops::rms_norm(hidden.to(at::kFloat), norm_.to(at::kFloat), config_.text.rms_norm_eps);
    context.tap("logit_yes", normed.mv(rows[0]));
    context.tap("logit_no", normed.mv(rows[1]));
  }
  return head_segment_.forward(
      [this, row = head_row_](at::Tensor const& x) {
        return ops::rms_norm(x.to(at::kFloat), norm_.to(at::kFloat), config_.text.rms_norm_eps)
            .mv(row);
      },
      hidden, needs_grad, context.training ? Keep::graph : Keep::nothing);
}

void Reranker::backward(at::Tensor const& dscores) {
  VLR_REQUIRE(waits_, "backward() without a training forward() before it",
              "this is a bug in the caller: call forward() once per backward()");
  waits_ = false;
  at::NoGradGuard const off;
  auto const batch = std::exchange(batch_, PackedBatch());
  auto const layers = static_cast<std::int64_t>(layers_.size());
  visitor_(ModelPart::head, -1);
  auto grad = head_segment_.backward(dscores.to(at::kFloat));
  if (head_row_.requires_grad()) {
    auto& into = gradient_of(head_weight());
    into[yes_].add_(head_row_.grad());
    into[no_].sub_(head_row_.grad());
  }
  head_row_.reset();
  if (!grad.defined()) return;
  if (!pruned_) {
    auto full = at::zeros({batch.tokens(), grad.size(1)}, grad.options());
    full.index_copy_(0, batch.last, grad);
    grad = full;
  }
  bool const visual = input_needs_grad_ && batch.pixels.defined() && batch.pixels.size(0) > 0 &&
                      (vision_.tower_trains() || vision_.aligner_trains());
  VisionFeatures features;
  features.deepstack.resize(config_.vision.deepstack_visual_indexes.size());
  for (auto l = layers; l-- > lowest_;) {
    auto const at = static_cast<std::size_t>(l);
    visitor_(ModelPart::llm, static_cast<int>(l));
    if (visual && !(pruned_ && l == layers - 1) && at < features.deepstack.size())
      features.deepstack[at] = visual_gradient(grad, batch);
    grad = segments_[at].backward(grad);
  }
  if (!input_needs_grad_) return;
  if (visual) features.merged = visual_gradient(grad, batch);
  if (embedding_.requires_grad()) {
    visitor_(ModelPart::embedding, -1);
    if (batch.visual_token.defined()) grad.index_fill_(0, batch.visual_token, 0);
    ops::add_rows_(gradient_of(embedding_), batch.ids, grad);
  }
  if (visual) vision_.backward(features);
}

}  // namespace vlrerank
