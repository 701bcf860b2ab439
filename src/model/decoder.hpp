// model/decoder.hpp -- one layer of the text decoder, and the tables its layers share.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "kernels/attention.hpp"
#include "loader/batch.hpp"
#include "model/config.hpp"
#include "model/context.hpp"
#include "model/linear.hpp"
#include "model/parameters.hpp"

namespace vlrerank {

/// Interleaved M-RoPE: frequency i of a head takes the height position if i % 3 == 1, the width
/// position if i % 3 == 2 (both within their section), else the temporal one.
struct TextRope {
  at::Tensor cos;  // [T, D / 2] float32
  at::Tensor sin;
};
TextRope text_rope(at::Tensor const& positions, TextConfig const& config);

/// The batch's runs as the attention takes them.
AttentionRuns runs_of(PackedBatch const& batch);
/// Runs of one query each: the batch's `last` tokens over all keys they see.
AttentionRuns runs_of_last(PackedBatch const& batch);

/// What every layer of one pass reads.
struct DecoderInputs {
  TextRope rope;
  AttentionRuns runs;
  DropoutState dropout;
  // For the last layer, when only the scored tokens matter:
  at::Tensor last;  // [S] int64; undefined: all tokens
  TextRope last_rope;
  AttentionRuns last_runs;
  DropoutState last_dropout;
};

class DecoderLayer {
 public:
  void list(ParameterList& list, std::string const& prefix, TextConfig const& config);

  /// @param hidden  [T, H]
  /// @return        [T, H]
  at::Tensor forward(at::Tensor const& hidden, DecoderInputs const& inputs,
                     TextConfig const& config) const;
  /// The same for the rows inputs.last alone: keys and values of all tokens, the rest of S.
  /// @return        [S, H]
  at::Tensor forward_last(at::Tensor const& hidden, DecoderInputs const& inputs,
                          TextConfig const& config) const;
  /// The inside of forward() by golden name, for tests.
  void tap(at::Tensor const& hidden, DecoderInputs const& inputs, TextConfig const& config,
           std::string const& prefix, ForwardContext const& context) const;
  bool trains() const;

 private:
  at::Tensor finish(at::Tensor const& residual, at::Tensor const& heads,
                    DropoutState const& dropout, TextConfig const& config) const;
  at::Tensor input_norm_, post_norm_, q_norm_, k_norm_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_, gate_proj_, up_proj_, down_proj_;
};

}  // namespace vlrerank
