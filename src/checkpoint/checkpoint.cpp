// checkpoint/checkpoint.cpp -- trainer state as JSON, optimizer state as safetensors.
#include "checkpoint/checkpoint.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>
#include <set>

#include "io/files.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr auto state_name = "trainer_state.json";
constexpr auto optimizer_name = "optimizer.safetensors";

at::Tensor cut(at::Tensor const& flat, Slice const& slice) {
  return flat.narrow(0, slice.offset, slice.numel).view(slice.shape);
}

}  // namespace

void write_trainer_state(fs::path const& directory, TrainerState const& state) {
  json out = {{"format", 1},
              {"global_step", state.step},
              {"max_steps", state.total_steps},
              {"optimizer_steps", state.optimizer_steps.text},
              {"optimizer_steps_vision", state.optimizer_steps.vision},
              {"epoch", state.epoch},
              {"global_batch_size", state.global_batch_size},
              {"rows", state.rows},
              {"seed", state.seed},
              {"metric_for_best_model", state.metric_for_best_model},
              {"best_metric", nullptr},
              {"best_step", nullptr},
              {"train_seconds", state.seconds}};
  if (state.best_metric) out["best_metric"] = *state.best_metric;
  if (state.best_step) out["best_step"] = *state.best_step;
  write_file(directory / state_name, out.dump(2) + "\n");
}

TrainerState read_trainer_state(fs::path const& directory) {
  auto const path = directory / state_name;
  auto const in = json::parse(read_file(path, 1 << 20), nullptr, /*allow_exceptions=*/false);
  try {
    TrainerState state;
    state.step = in.at("global_step");
    state.total_steps = in.at("max_steps");
    state.optimizer_steps = {in.at("optimizer_steps"), in.at("optimizer_steps_vision")};
    state.epoch = in.at("epoch");
    state.global_batch_size = in.at("global_batch_size");
    state.rows = in.at("rows");
    state.seed = in.at("seed");
    state.metric_for_best_model = in.at("metric_for_best_model");
    if (!in.at("best_metric").is_null()) state.best_metric = in.at("best_metric").get<double>();
    if (!in.at("best_step").is_null()) state.best_step = in.at("best_step").get<std::int64_t>();
    state.seconds = in.at("train_seconds");
    return state;
  } catch (json::exception const& error) {
    throw Error(Exit::input, text(path.string(), " is damaged: ", error.what()),
                "resume from an older checkpoint", VLR_WHERE);
  }
}

void write_optimizer(fs::path const& directory, std::vector<Arena>& arenas, ShardedAdamW& optimizer,
                     Communicator& comm, MasterValues values) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    auto const first = optimizer.first_moment(i).cpu();
    auto const second = optimizer.second_moment(i).cpu();
    if (!comm.is_root()) continue;
    auto const value = arenas[i].values().cpu();
    for (auto const& slice : arenas[i].slices()) {
      tensors.emplace_back(slice.name + ".exp_avg", cut(first, slice));
      tensors.emplace_back(slice.name + ".exp_avg_sq", cut(second, slice));
      if (values == MasterValues::write)
        tensors.emplace_back(slice.name + ".value", cut(value, slice));
    }
  }
  if (comm.is_root()) write_safetensors(directory / optimizer_name, tensors);
}

bool read_optimizer(fs::path const& directory, std::vector<Arena>& arenas,
                    ShardedAdamW& optimizer) {
  auto const path = directory / optimizer_name;
  VLR_USAGE(
      fs::exists(path),
      text(directory.string(), " has no optimizer state (it was saved with --save-only-model)"),
      "start a new run from its weights with --adapter or --model");
  auto const file = TensorFile::open(path);
  std::set<std::string> unused;
  bool values = false;
  for (auto const& [name, info] : file.tensors()) {
    unused.insert(name);
    values = values || name.ends_with(".value");
  }
  at::NoGradGuard const no_grad;
  auto take = [&](std::string const& name, at::Tensor const& target) {
    VLR_INPUT(unused.erase(name) == 1, text(path.string(), " lacks ", name),
              "the checkpoint was made with other trainable parts: give the same LoRA targets and "
              "freeze options as that run's config.json");
    auto const source = file.get(name);
    VLR_INPUT(source.sizes() == target.sizes(),
              text(path.string(), ": ", name, " has shape ", source.sizes(), ", expected ",
                   target.sizes()),
              "the checkpoint was made with another --lora-rank or model");
    target.copy_(source);
  };
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    auto const options = at::TensorOptions().dtype(at::kFloat);
    auto first = at::zeros({arenas[i].size()}, options);
    auto second = at::zeros({arenas[i].size()}, options);
    for (auto const& slice : arenas[i].slices()) {
      take(slice.name + ".exp_avg", cut(first, slice));
      take(slice.name + ".exp_avg_sq", cut(second, slice));
      if (values) take(slice.name + ".value", cut(arenas[i].values(), slice));
    }
    optimizer.set_moments(i, first, second);
  }
  VLR_INPUT(unused.empty(),
            text(path.string(), " also holds ", unused.empty() ? "" : *unused.begin()),
            "the checkpoint was made with other trainable parts: give the same LoRA targets and "
            "freeze options as that run's config.json");
  return values;
}

}  // namespace vlrerank
