// train/evaluate.cpp -- scoring a data set and gathering the scores.
#include "train/evaluate.hpp"

#include <ATen/ATen.h>

#include "loader/loader.hpp"
#include "loader/plan.hpp"

namespace vlrerank {
namespace {

/// [n, 3] of every rank, one after the other: [sum of n, 3].
at::Tensor gather_rows(Communicator& comm, at::Tensor const& mine) {
  auto sizes = at::zeros({comm.size()}, at::kLong);
  comm.all_gather(sizes, at::full({1}, mine.size(0), at::kLong)).wait();
  auto const longest = std::max<std::int64_t>(1, sizes.max().item<std::int64_t>());
  auto padded = at::zeros({longest, 3}, at::kDouble);
  padded.narrow(0, 0, mine.size(0)).copy_(mine);
  auto all = at::zeros({comm.size() * longest, 3}, at::kDouble);
  comm.all_gather(all, padded).wait();
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < comm.size(); ++rank)
    parts.push_back(all.narrow(0, rank * longest, sizes[rank].item<std::int64_t>()));
  return at::cat(parts);
}

}  // namespace

std::vector<RowScores> score_rows(Session& session, DataSet const& data,
                                  std::int64_t micro_batch_tokens, bool share_prefix,
                                  Communicator& control) {
  auto const plan =
      evaluation_plan(data, micro_batch_tokens, share_prefix, control.rank(), control.size());
  Loader loader(data, session.prompt_ids, share_prefix,
                [&](std::int64_t number) -> std::optional<std::vector<MicroBatch>> {
                  if (number > 0) return std::nullopt;
                  return plan;
                });
  std::vector<at::Tensor> parts{at::zeros({0, 3}, at::kDouble)};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto const loaded = loader.next();
    auto const batch = to_device(loaded.batch, session.device);
    auto const scores = session.model->forward(batch, ForwardContext{}).cpu().to(at::kDouble);
    auto const n = batch.sequences();
    auto part = at::empty({n, 3}, at::kDouble);
    auto* out = part.mutable_data_ptr<double>();
    for (std::int64_t s = 0; s < n; ++s) {
      out[3 * s] = static_cast<double>(batch.rows[static_cast<std::size_t>(s)]);
      out[3 * s + 1] = static_cast<double>(batch.documents[static_cast<std::size_t>(s)]);
      out[3 * s + 2] = scores.const_data_ptr<double>()[s];
    }
    parts.push_back(std::move(part));
  }
  auto const all = gather_rows(control, at::cat(parts));

  std::vector<RowScores> rows(static_cast<std::size_t>(data.rows()));
  for (std::int64_t row = 0; row < data.rows(); ++row) {
    auto const index = data.index(row);
    auto& out = rows[static_cast<std::size_t>(row)];
    out.row = row;
    out.labels.assign(index.labels.begin(), index.labels.end());
    out.scores.assign(index.labels.size(), 0.0);
  }
  auto const* values = all.const_data_ptr<double>();
  for (std::int64_t i = 0; i < all.size(0); ++i)
    rows[static_cast<std::size_t>(values[3 * i])]
        .scores[static_cast<std::size_t>(values[3 * i + 1])] = values[3 * i + 2];
  return rows;
}

}  // namespace vlrerank
