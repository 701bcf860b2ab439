// params/adapter_config.cpp -- adapter_config.json, read and written as peft has it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/files.hpp"
#include "params/adapter.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

bool is_off(json const& value) {
  return value.is_null() || value == false ||
         (value.is_string() && value.get<std::string>().empty()) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

/// Features of peft that change what an adapter means and that this program does not compute.
void refuse_unsupported(json const& config, std::string const& file) {
  auto refuse = [&](std::string const& what) {
    throw Error(Exit::input, text(file, ": ", what, " is not supported"),
                "merge the adapter into its base with peft, or train it without this feature",
                VLR_WHERE);
  };
  if (config.value("peft_type", "") != "LORA")
    refuse(text("peft_type ", config.value("peft_type", "(missing)")));
  if (auto const bias = config.value("bias", json("none")); bias != "none")
    refuse(text("bias ", bias.dump()));
  for (auto const* name :
       {"use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "fan_in_fan_out",
        "layers_to_transform", "layer_replication", "exclude_modules", "target_parameters",
        "trainable_token_indices", "lora_bias", "use_qalora", "use_bdlora",
        "alora_invocation_tokens", "arrow_config"})
    if (config.contains(name) && !is_off(config[name]))
      refuse(text(name, " = ", config[name].dump()));
}

template <class T>
T field(json const& config, char const* name, T fallback, std::string const& file) {
  if (!config.contains(name) || config[name].is_null()) return fallback;
  try {
    return config[name].get<T>();
  } catch (json::exception const&) {
    throw Error(Exit::input, text(file, ": ", name, " is ", config[name].dump()),
                "it must be of the type that peft writes", VLR_WHERE);
  }
}

}  // namespace

AdapterConfig adapter_config(LoraSettings const& lora, TrainableSettings const& trainable,
                             std::string base_model) {
  auto frozen = [](bool yes) { return yes ? Frozen::yes : Frozen::no; };
  AdapterConfig config;
  config.rank = lora.rank;
  config.alpha = lora.alpha;
  config.dropout = lora.dropout;
  config.rslora = lora.rslora;
  config.targets = parse_targets(lora.targets, frozen(trainable.freeze_llm),
                                 frozen(trainable.freeze_vit), frozen(trainable.freeze_aligner));
  config.base_model = std::move(base_model);
  return config;
}

AdapterConfig load_adapter_config(std::filesystem::path const& directory) {
  auto const path = directory / "adapter_config.json";
  std::ifstream stream(path);
  VLR_INPUT(stream, text("cannot read ", path.string()),
            "--adapter takes a directory with adapter_config.json and adapter_model.safetensors");
  auto const config = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  auto const file = path.string();
  VLR_INPUT(config.is_object(), text(file, " is not a JSON object"), "copy the adapter again");
  refuse_unsupported(config, file);

  AdapterConfig out;
  out.rank = field<std::int64_t>(config, "r", 8, file);
  out.alpha = field<double>(config, "lora_alpha", 8, file);
  out.dropout = field<double>(config, "lora_dropout", 0, file);
  out.rslora = field<bool>(config, "use_rslora", false, file);
  out.base_model = field<std::string>(config, "base_model_name_or_path", "", file);
  VLR_INPUT(out.rank > 0 && out.rank <= 65536, text(file, ": r is ", out.rank),
            "it must be a positive number");
  auto const targets = config.value("target_modules", json());
  if (targets.is_string() && targets == "all-linear")
    out.targets = parse_targets({"all-linear"}, Frozen::no, Frozen::yes, Frozen::yes);
  else if (targets.is_string())
    out.targets.regex = targets.get<std::string>();
  else
    out.targets.suffixes = field<std::vector<std::string>>(config, "target_modules", {}, file);
  VLR_INPUT(!out.targets.regex.empty() || !out.targets.suffixes.empty(),
            text(file, " names no target_modules"), "copy the adapter again");
  return out;
}

void write_adapter_config(std::filesystem::path const& directory, AdapterConfig const& config) {
  json out = {
      {"base_model_name_or_path", config.base_model},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"lora_alpha", config.alpha},
      {"lora_dropout", config.dropout},
      {"modules_to_save", nullptr},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"target_modules", nullptr},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", false},
      {"use_rslora", config.rslora},
  };
  if (config.targets.regex.empty())
    out["target_modules"] = config.targets.suffixes;
  else
    out["target_modules"] = config.targets.regex;
  write_file(directory / "adapter_config.json", out.dump(2) + "\n");
}

}  // namespace vlrerank
