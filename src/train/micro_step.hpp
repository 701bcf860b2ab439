// train/micro_step.hpp -- forward, loss and backward of one micro-batch.
#pragma once

#include "loader/loader.hpp"
#include "train/objective.hpp"
#include "train/session.hpp"

namespace vlrerank {

struct MicroStep {
  PackedBatch batch;  // on the session's device
  at::Tensor scores;  // [S] float32
  LossResult result;
};

/// Adds the gradients of the micro-batch's weighted losses to the session's arenas. No host
/// synchronisation: sums stay on the device.
MicroStep micro_step(Session& session, LoadedBatch const& loaded, LossParameters const& loss,
                     ForwardContext const& context);

}  // namespace vlrerank
