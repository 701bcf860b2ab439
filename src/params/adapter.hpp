// params/adapter.hpp -- LoRA adapters in PEFT's layout: adapter_config.json and
// adapter_model.safetensors, as peft, ms-swift and vLLM load them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.hpp"
#include "model/linear.hpp"
#include "params/arena.hpp"
#include "params/targets.hpp"

namespace vlrerank {

struct AdapterConfig {
  std::int64_t rank = 8;
  double alpha = 32;
  double dropout = 0;
  bool rslora = false;  ///< scale alpha / sqrt(rank) instead of alpha / rank
  Targets targets;
  std::string base_model;  ///< as written into adapter_config.json

  double scale() const;
};

/// What the options ask for.
AdapterConfig adapter_config(LoraSettings const& lora, TrainableSettings const& trainable,
                             std::string base_model);
/// Reads directory/adapter_config.json. Throws Error (exit 3) for another peft_type and for each
/// feature that is not supported (use_dora, bias, modules_to_save, patterns ...), by name.
AdapterConfig load_adapter_config(std::filesystem::path const& directory);

/// Gives every matching linear its pair: float32 views of arenas, one arena a decoder layer and one
/// for the rest; A uniform in +-1 / sqrt(in) as a function of (seed, name), B zero.
///
/// @param multiple  every arena's length is a multiple of it
std::vector<Arena> attach_adapter(std::vector<Linear*> const& linears, AdapterConfig const& config,
                                  std::uint64_t seed, std::int64_t multiple, at::Device device);

/// Reads directory/adapter_model.safetensors into the pairs of the attached adapter. Every key must
/// belong to a module and every module must have its keys, with the right shapes and no empty
/// tensor; otherwise throws Error (exit 3) with the first five names.
void load_adapter(std::filesystem::path const& directory, std::vector<Linear*> const& linears);

/// Writes adapter_config.json as peft reads it.
void write_adapter_config(std::filesystem::path const& directory, AdapterConfig const& config);
/// Writes both files. Keys: "base_model.model." + module + ".lora_A.weight" / ".lora_B.weight".
void save_adapter(std::filesystem::path const& directory, std::vector<Linear*> const& linears,
                  AdapterConfig const& config);

/// The key of a module's A or B in the saved file.
std::string adapter_key(std::string const& module, char which);

/// The decoder layer that a tensor or module name belongs to; -1: none.
std::int64_t layer_of(std::string const& name);
/// The learning rate group of a tensor or module name.
RateGroup rate_group_of(std::string const& name);

}  // namespace vlrerank
