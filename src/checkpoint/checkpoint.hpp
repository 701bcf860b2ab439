// checkpoint/checkpoint.hpp -- what a run needs to go on: where it was, and the optimizer's state.
// Written into a draft folder that becomes the checkpoint by one rename.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "params/arena.hpp"
#include "zero/optimizer.hpp"

namespace vlrerank {

/// trainer_state.json.
struct TrainerState {
  std::int64_t step = 0;  // optimizer steps done
  std::int64_t total_steps = 0;
  ShardedAdamW::Steps optimizer_steps;  // fewer than `step` when steps were skipped
  double epoch = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t rows = 0;  // of the training set
  std::uint64_t seed = 0;
  std::string metric_for_best_model;
  std::optional<double> best_metric;
  std::optional<std::int64_t> best_step;
  double seconds = 0;  // spent training, all attempts together
};
void write_trainer_state(std::filesystem::path const& directory, TrainerState const& state);
/// Throws Error (exit 3) when the file is missing or malformed.
TrainerState read_trainer_state(std::filesystem::path const& directory);

/// Writes optimizer.safetensors: NAME.exp_avg and NAME.exp_avg_sq of every trainable tensor, in its
/// own shape and without padding, so that any number of ranks and any stage can read it, and the
/// float32 values themselves when `values` asks for them (a full model may be saved narrower).
/// Collective; the root writes.
enum class MasterValues { leave, write };
void write_optimizer(std::filesystem::path const& directory, std::vector<Arena>& arenas,
                     ShardedAdamW& optimizer, Communicator& comm, MasterValues values);
/// Reads it back, on every rank. Throws Error (exit 3) naming the first tensors that are missing,
/// too many or of another shape. @return whether it held float32 values, which are then restored
bool read_optimizer(std::filesystem::path const& directory, std::vector<Arena>& arenas,
                    ShardedAdamW& optimizer);

}  // namespace vlrerank
