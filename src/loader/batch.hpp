// loader/batch.hpp -- what the model computes on: rows packed end to end, without padding.
// A row's shared prefix stands once, as a run of its own; its documents follow as runs that also
// attend to that prefix. Without sharing every document is one run: the same form, no special case.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "media/image.hpp"

namespace vlrerank {

/// T tokens, R runs, K keys, S scored documents, P patches, V visual tokens.
struct PackedBatch {
  at::Tensor ids;        // [T] int64
  at::Tensor positions;  // [3, T] int64: temporal, height, width
  at::Tensor token_key;  // [T] int64: hash of (row, document or prefix, position), for dropout

  // Run r holds the tokens [cu_q[r], cu_q[r + 1]); its queries see the keys
  // [cu_k[r], cu_k[r + 1]) causally, aligned at the end: the last query sees the last key.
  std::vector<std::int32_t> cu_q;  // [R + 1], first 0, last T
  std::vector<std::int32_t> cu_k;  // [R + 1], first 0, last K
  at::Tensor cu_q_device;          // [R + 1] int32, the same on the batch's device
  at::Tensor cu_k_device;          // [R + 1] int32
  at::Tensor kv_index;  // [K] int64: token of each key; undefined when K = T, key = token
  std::int32_t longest_q = 0;
  std::int32_t longest_k = 0;

  at::Tensor last;                      // [S] int64: token whose hidden state is scored
  at::Tensor labels;                    // [S] float32
  std::vector<std::int64_t> rows;       // [S] number of the document's row in the data set
  std::vector<std::int32_t> documents;  // [S] its index among the row's documents

  at::Tensor pixels;         // [P, 1536] uint8, patch order of the reference; undefined if P = 0
  std::vector<Grid> grids;   // one a distinct picture or video, in the order of pixels
  at::Tensor visual_token;   // [V] int64: tokens to be filled with vision features
  at::Tensor visual_source;  // [V] int64: which merged feature (of P / 4) each one takes

  std::int64_t tokens() const { return cu_q.empty() ? 0 : cu_q.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(rows.size()); }
};

}  // namespace vlrerank
