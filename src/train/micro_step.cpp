// train/micro_step.cpp -- from a loaded micro-batch to gradients.
#include "train/micro_step.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace vlrerank {

MicroStep micro_step(Session& session, LoadedBatch const& loaded, LossParameters const& loss,
                     ForwardContext const& context) {
  std::vector<LossGroup> groups;
  std::int64_t at = 0;
  for (auto const& piece : loaded.pieces) {
    auto const count = static_cast<std::int64_t>(piece.documents.size());
    groups.push_back({at, count, piece.weight});
    at += count;
  }
  auto const terms = loss_terms(loaded.batch.labels, groups, loss, session.device);
  MicroStep step;
  step.batch = to_device(loaded.batch, session.device);
  step.scores = session.model->forward(step.batch, context);
  step.result = reranker_loss(step.scores, terms, loss);
  session.model->backward(step.result.gradient);
  return step;
}

}  // namespace vlrerank
