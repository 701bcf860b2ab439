// train/save.hpp -- checkpoints of a run: what was trained, in the form that others load.
#pragma once

#include <cstdint>
#include <filesystem>

#include "checkpoint/checkpoint.hpp"
#include "config/settings.hpp"
#include "train/run_directory.hpp"
#include "train/session.hpp"

namespace vlrerank {

enum class IsBest { no, yes };

/// Writes checkpoint-<step> under a temporary name, renames it, sets the links and prunes.
/// LoRA: PEFT's adapter files. Full: a Hugging Face model directory. Both: vlrerank.json (prompt,
/// limits), trainer_state.json and, unless --save-only-model, optimizer.safetensors. Collective.
void save_checkpoint(std::int64_t step, IsBest best, Settings const& settings, Session& session,
                     TrainerState const& state, ShardedAdamW& optimizer,
                     RunDirectory const& directory, Communicator& control);

/// Reads the trained tensors of a checkpoint into the session's arenas.
void load_trained(std::filesystem::path const& checkpoint, Session& session);

/// Copies tokenizer, processor and configuration files of a model directory.
void copy_model_files(std::filesystem::path const& from, std::filesystem::path const& to);

}  // namespace vlrerank
