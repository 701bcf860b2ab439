// train/session.hpp -- a model that can score: what train, eval and score open alike.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "loader/dataset.hpp"
#include "loader/plan.hpp"
#include "model/reranker.hpp"
#include "params/adapter.hpp"
#include "safetensors/safetensors.hpp"
#include "tokenizer/tokenizer.hpp"

namespace vlrerank {

/// Prints one line on the root rank.
using Log = std::function<void(std::string const& line)>;

/// The directory of a model: itself, or a hub id ("Qwen/...") found in the local Hugging Face or
/// ModelScope cache. Nothing is downloaded. Throws Error (exit 3) saying what to fetch and where
/// to put it.
std::filesystem::path find_model(std::string const& name,
                                 std::function<char const*(char const*)> const& environment);

struct Session {
  std::filesystem::path directory;
  Tokenizer tokenizer;
  PromptIds prompt_ids;
  TensorFiles files;
  std::unique_ptr<Reranker> model;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  std::vector<Arena> arenas;             // trainable or adapter values; empty: the base model alone
  std::optional<AdapterConfig> adapter;  // when LoRA pairs are attached
};

enum class Purpose { scoring, training };

/// Loads tokenizer and model; for training it attaches what is trained (LoRA pairs, or the model's
/// own tensors in arenas), for scoring the adapter if one is given.
/// @param multiple  arenas' lengths are multiples of it: ranks x 128
Session open_session(Settings const& settings, Purpose purpose, std::int64_t multiple,
                     std::function<char const*(char const*)> const& environment, Log const& log);

/// float32 on the CPU whatever is asked for (with a notice); bfloat16 where a GPU has it.
at::ScalarType choose_dtype(std::string const& asked, at::Device device, Log const& log);

}  // namespace vlrerank
