// support/golden_batch.hpp -- packed batches from the reference's padded tensors.
// The reference pads rows to a rectangle; here only real tokens remain, each row a run, or, when
// asked, rows that begin alike share that beginning as a run of its own.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "loader/batch.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {

/// One query-document pair as plain numbers.
struct GoldenRow {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> positions[3];
  std::vector<std::int64_t> source;  // merged feature of a visual token, -1 for text
  std::vector<std::int64_t> padded;  // column in the reference's tensors
  std::int64_t query = 0;            // rows of one query may share its tokens
};

struct GoldenBatch {
  std::vector<GoldenRow> rows;
  at::Tensor pixels;
  std::vector<Grid> grids;
  at::Tensor labels;
};

inline GoldenBatch read_golden(TensorFiles const& file) {
  GoldenBatch golden;
  auto const ids = file.get("input_ids"), mask = file.get("attention_mask"),
             types = file.get("mm_token_type_ids"), positions = file.get("position_ids");
  std::int64_t feature = 0;
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    GoldenRow row;
    row.query = b;
    for (std::int64_t t = 0; t < ids.size(1); ++t) {
      if (mask[b][t].item<std::int64_t>() == 0) continue;
      row.ids.push_back(ids[b][t].item<std::int64_t>());
      for (std::int64_t axis = 0; axis < 3; ++axis)
        row.positions[axis].push_back(positions[axis][b][t].item<std::int64_t>());
      row.source.push_back(types[b][t].item<std::int64_t>() != 0 ? feature++ : -1);
      row.padded.push_back(t);
    }
    golden.rows.push_back(row);
  }
  for (std::string const name : {"pixel_values", "pixel_values_videos"}) {
    if (file.contains(name + "_u8")) golden.pixels = file.get(name + "_u8");
    if (file.contains(name))
      golden.pixels = file.get(name).mul(127.5).add(127.5).round().to(at::kByte);
  }
  for (std::string const name : {"image_grid_thw", "video_grid_thw"}) {
    if (!file.contains(name)) continue;
    auto const grid = file.get(name).to(at::kInt);
    for (std::int64_t i = 0; i < grid.size(0); ++i)
      golden.grids.push_back(
          {grid[i][0].item<int>(), grid[i][1].item<int>(), grid[i][2].item<int>()});
  }
  golden.labels =
      file.contains("labels") ? file.get("labels").to(at::kFloat) : at::zeros({ids.size(0)});
  return golden;
}

enum class Share { nothing, prefix };

/// Tokens that all rows of [begin, end) have in common at their start.
inline std::size_t common_prefix(std::vector<GoldenRow> const& rows, std::size_t begin,
                                 std::size_t end) {
  std::size_t common = rows[begin].ids.size();
  for (auto i = begin + 1; i < end; ++i) {
    std::size_t same = 0;
    while (same < std::min(common, rows[i].ids.size()) &&
           rows[i].ids[same] == rows[begin].ids[same] &&
           rows[i].source[same] == rows[begin].source[same])
      ++same;
    common = same;
  }
  return std::min(common, rows[begin].ids.size() - 1);
}

/// Packs rows end to end. Token keys name (query, document or prefix, position), so that they are
/// the same with and without sharing.
inline PackedBatch pack_golden(GoldenBatch const& golden, Share share) {
  PackedBatch batch;
  std::vector<std::int64_t> ids, keys, index, positions[3], last, visual, source;
  batch.cu_q = batch.cu_k = {0};
  auto const add_tokens = [&](GoldenRow const& row, std::size_t begin, std::size_t end,
                              std::int64_t document, std::size_t shared) {
    for (auto t = begin; t < end; ++t) {
      if (row.source[t] >= 0) {
        visual.push_back(static_cast<std::int64_t>(ids.size()));
        source.push_back(row.source[t]);
      }
      ids.push_back(row.ids[t]);
      for (int axis = 0; axis < 3; ++axis) positions[axis].push_back(row.positions[axis][t]);
      auto const owner = t < shared ? -1 : document;
      keys.push_back((row.query * 1000 + owner + 1) * 1000003 + static_cast<std::int64_t>(t));
    }
  };
  auto const close_run = [&] {
    batch.longest_q = std::max(batch.longest_q, static_cast<int>(ids.size()) - batch.cu_q.back());
    batch.longest_k = std::max(batch.longest_k, static_cast<int>(index.size()) - batch.cu_k.back());
    batch.cu_q.push_back(static_cast<int>(ids.size()));
    batch.cu_k.push_back(static_cast<int>(index.size()));
  };
  auto const add_keys = [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) index.push_back(k);
  };
  auto const& rows = golden.rows;
  for (std::size_t begin = 0; begin < rows.size();) {
    auto end = begin + 1;
    while (end < rows.size() && rows[end].query == rows[begin].query) ++end;
    auto const shared = end - begin > 1 ? common_prefix(rows, begin, end) : 0;
    auto const first = static_cast<std::int64_t>(ids.size());
    bool const branches = share == Share::prefix && shared > 0;
    if (branches) {
      add_tokens(rows[begin], 0, shared, 0, shared);
      add_keys(first, first + static_cast<std::int64_t>(shared));
      close_run();
    }
    for (auto i = begin; i < end; ++i) {
      auto const own = static_cast<std::int64_t>(ids.size());
      if (branches) add_keys(first, first + static_cast<std::int64_t>(shared));
      add_tokens(rows[i], branches ? shared : 0, rows[i].ids.size(),
                 static_cast<std::int64_t>(i - begin), shared);
      add_keys(own, static_cast<std::int64_t>(ids.size()));
      close_run();
      last.push_back(static_cast<std::int64_t>(ids.size()) - 1);
      batch.rows.push_back(rows[i].query);
      batch.documents.push_back(static_cast<int>(i - begin));
    }
    begin = end;
  }
  batch.ids = at::tensor(ids, at::kLong);
  batch.token_key = at::tensor(keys, at::kLong);
  batch.positions =
      at::stack({at::tensor(positions[0], at::kLong), at::tensor(positions[1], at::kLong),
                 at::tensor(positions[2], at::kLong)});
  batch.cu_q_device = at::tensor(batch.cu_q, at::kInt);
  batch.cu_k_device = at::tensor(batch.cu_k, at::kInt);
  if (index.size() != ids.size()) batch.kv_index = at::tensor(index, at::kLong);
  batch.last = at::tensor(last, at::kLong);
  batch.labels = golden.labels;
  batch.pixels = golden.pixels;
  batch.grids = golden.grids;
  if (golden.pixels.defined()) {
    batch.visual_token = at::tensor(visual, at::kLong);
    batch.visual_source = at::tensor(source, at::kLong);
  }
  return batch;
}

}  // namespace vlrerank
