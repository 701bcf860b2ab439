// zero/optimizer.hpp -- AdamW over flat buffers, its state replicated or split over the ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "params/arena.hpp"

namespace vlrerank {

/// Learning rates of one step.
struct StepRates {
  double base = 0;
  double vision = 0;
  double aligner = 0;
};

/// Whether the step's documents held any picture: without one, the vision tower and the mergers
/// got no gradient.
enum class Pictures { none, some };

/// Who keeps what. Stage 0: every rank all. 1 and 2: moments (2: and reduced gradients) of its own
/// part only.
enum class ZeroStage { replicated = 0, optimizer = 1, gradients = 2 };

/// Owns the first and second moments of its part of every arena.
///
/// Decoupled weight decay: p -= lr * wd * p; then p -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 -
/// b2^t))
/// + eps) (Loshchilov and Hutter, arXiv:1711.05101). Spans without decay keep their values.
class ShardedAdamW {
 public:
  /// Keeps references: arenas and communicator must outlive the optimizer. Every arena's padded
  /// size must be a multiple of comm.size().
  ShardedAdamW(std::vector<Arena>& arenas, Communicator& comm, OptimizerSettings const& settings,
               ZeroStage stage);

  /// Sums the gradients over all ranks, clips them, updates, and distributes the new values.
  ///
  /// The gradient is clipped by min(1, max_grad_norm / (norm + 1e-6)) over all arenas together.
  /// A norm that is not finite changes nothing: no value, no moment, no step count. Neither does a
  /// step without pictures change the vision tower and the mergers (torch skips tensors without a
  /// gradient alike): no decay, no moment, and their step count for the bias correction stays.
  /// @return  global gradient norm before clipping
  /// Collective. Clears the gradients.
  double step(StepRates const& rates, Pictures pictures = Pictures::some);

  /// Updates made so far: of the decoder, and of the vision tower and mergers.
  struct Steps {
    std::int64_t text = 0;
    std::int64_t vision = 0;
  };
  Steps steps() const { return steps_; }
  void set_steps(Steps steps) { steps_ = steps; }

  /// Whole moments of arena i, [size], gathered from all ranks. Collective.
  at::Tensor first_moment(std::size_t i);
  at::Tensor second_moment(std::size_t i);
  /// Takes whole moments [size] of arena i, from a checkpoint of any number of ranks.
  void set_moments(std::size_t i, at::Tensor const& first, at::Tensor const& second);

 private:
  struct Part {
    at::Tensor gradient;  // this rank's elements [n]; a view when replicated
    at::Tensor first;     // [n]
    at::Tensor second;    // [n]
    std::int64_t begin = 0;
  };
  bool sharded() const { return stage_ != ZeroStage::replicated; }
  void update(Arena& arena, Part& part, StepRates const& rates, Pictures pictures);
  at::Tensor gather(std::size_t i, at::Tensor const& mine);

  std::vector<Arena>& arenas_;
  Communicator& comm_;
  OptimizerSettings settings_;
  ZeroStage stage_;
  std::vector<Part> parts_;
  Steps steps_;
};

}  // namespace vlrerank
