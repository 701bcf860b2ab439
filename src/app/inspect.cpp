// app/inspect.cpp -- `vlrerank inspect`: what a shard set, a checkpoint, an adapter or a model
// holds.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "checkpoint/checkpoint.hpp"
#include "model/reranker.hpp"
#include "params/adapter.hpp"
#include "safetensors/safetensors.hpp"
#include "shards/describe.hpp"
#include "train/run_directory.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

std::int64_t numbers_in(TensorInfo const& info) {
  std::int64_t n = 1;
  for (auto const extent : info.shape) n *= extent;
  return n;
}

/// Tensors, numbers and dtypes of a weight file set.
std::string describe_tensors(TensorFiles const& files) {
  std::int64_t numbers = 0;
  std::map<std::string, std::int64_t> dtypes;
  for (auto const& name : files.names()) {
    auto const& info = files.info(name);
    numbers += numbers_in(info);
    dtypes[safetensors_dtype(info.dtype)] += 1;
  }
  auto out = fmt::format("  {} tensors, {} numbers", files.names().size(), numbers);
  for (auto const& [dtype, count] : dtypes) out += fmt::format(", {} x {}", count, dtype);
  return out + "\n";
}

std::string describe_adapter(fs::path const& path) {
  auto const config = load_adapter_config(path);
  auto out =
      fmt::format("{}: LoRA adapter, rank {}, alpha {}, dropout {}{}\n", path.string(), config.rank,
                  config.alpha, config.dropout, config.rslora ? ", rslora" : "");
  out += fmt::format("  base model: {}\n", config.base_model);
  if (!config.targets.regex.empty()) {
    out += fmt::format("  targets: {}\n", config.targets.regex);
  } else {
    out += "  targets:";
    for (auto const& suffix : config.targets.suffixes) out += " " + suffix;
    out += "\n";
  }
  return out + describe_tensors(TensorFiles::open(path / "adapter_model.safetensors"));
}

std::string describe_model(fs::path const& path) {
  auto const config = ModelConfig::load(path);
  auto const& t = config.text;
  auto const& v = config.vision;
  auto out = fmt::format(
      "{}: Qwen3-VL model\n"
      "  text:   {} layers, hidden {}, intermediate {}, {} / {} heads x {}, vocabulary {}{}\n"
      "  vision: {} blocks, hidden {}, intermediate {}, {} heads\n",
      path.string(), t.num_hidden_layers, t.hidden_size, t.intermediate_size, t.num_attention_heads,
      t.num_key_value_heads, t.head_dim, t.vocab_size,
      config.tie_word_embeddings ? ", tied embeddings" : "", v.depth, v.hidden_size,
      v.intermediate_size, v.num_heads);
  out += describe_tensors(TensorFiles::open(path));
  out += "  linear modules (for --target-modules):\n";
  std::map<std::string, std::int64_t> modules;  // without layer numbers
  Reranker const model(config);
  for (auto const* linear : model.linears()) {
    std::string pattern;
    for (std::size_t i = 0; i < linear->name.size(); ++i) {
      bool const digit = std::isdigit(static_cast<unsigned char>(linear->name[i])) != 0 && i > 0 &&
                         (linear->name[i - 1] == '.' || pattern.ends_with("N"));
      if (!digit)
        pattern += linear->name[i];
      else if (!pattern.ends_with("N"))
        pattern += 'N';
    }
    ++modules[pattern];
  }
  for (auto const& [pattern, count] : modules) out += fmt::format("    {} ({})\n", pattern, count);
  return out;
}

std::string describe_state(fs::path const& path) {
  auto const state = read_trainer_state(path);
  auto out = fmt::format("  checkpoint after step {} of {} (epoch {:.2f}), {} rows a step\n",
                         state.step, state.total_steps, state.epoch, state.global_batch_size);
  if (state.best_metric)
    out += fmt::format("  best {} so far: {:.4f} at step {}\n", state.metric_for_best_model,
                       *state.best_metric, state.best_step.value_or(0));
  return out;
}

std::string describe_run(fs::path const& path) {
  RunDirectory const run(path);
  auto out = fmt::format("{}: run directory\n", path.string());
  for (auto const step : run.checkpoints())
    out += fmt::format("  checkpoint-{}{}{}\n", step, run.pointed("best") == step ? "  best" : "",
                       run.pointed("last") == step ? "  last" : "");
  return out;
}

std::string describe(fs::path const& path) {
  std::error_code error;
  VLR_INPUT(fs::exists(path, error), text(path.string(), " does not exist"), "check the path");
  if (fs::exists(path / "manifest.json", error) || path.extension() == ".h5")
    return describe_shards(path);
  if (path.extension() == ".safetensors")
    return path.string() + ":\n" + describe_tensors(TensorFiles::open(path));
  std::string out;
  if (fs::exists(path / "adapter_config.json", error))
    out = describe_adapter(path);
  else if (fs::exists(path / "metrics.jsonl", error))
    return describe_run(path);
  else if (fs::exists(path / "config.json", error))
    out = describe_model(path);
  VLR_INPUT(!out.empty(), text(path.string(), " holds no shards, checkpoint, adapter or model"),
            "give a shard set, a run directory, a checkpoint, an adapter or a model directory");
  if (fs::exists(path / "trainer_state.json", error)) out += describe_state(path);
  return out;
}

}  // namespace

int run_inspect(Settings const& settings) {
  for (auto const& input : settings.inputs) std::fputs(describe(input).c_str(), stdout);
  return 0;
}

}  // namespace vlrerank
