// app/train.cpp -- `vlrerank train`: opens data, model and run directory, and runs the trainer.
#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>

#include "app/commands.hpp"
#include "app/data.hpp"
#include "app/environment.hpp"
#include "config/options.hpp"
#include "io/files.hpp"
#include "train/trainer.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

/// What --resume means for this directory: the checkpoint to go on from, if any.
std::optional<fs::path> checkpoint_to_resume(Settings const& settings) {
  auto const& resume = settings.run.resume;
  if (resume == "never") return {};
  RunDirectory const directory(settings.run.output_dir);
  if (resume != "auto") {
    VLR_USAGE(fs::exists(fs::path(resume) / "trainer_state.json"),
              text("--resume ", resume, " is not a checkpoint"),
              "give a checkpoint-N folder, auto or never");
    return fs::path(resume);
  }
  auto const steps = directory.checkpoints();
  if (steps.empty()) return {};
  auto const last = directory.pointed("last");  // what the newest attempt saved
  if (last && std::find(steps.begin(), steps.end(), *last) != steps.end())
    return directory.checkpoint(*last);
  return directory.checkpoint(steps.back());
}

Existing existing_of(Settings const& settings) {
  if (settings.run.overwrite) return Existing::overwrite;
  return settings.run.resume == "never" ? Existing::refuse : Existing::resume;
}

/// CPU ranks of one host share its cores; the launcher's own setting wins.
void share_cores(Launch const& launch) {
  if (environment("OMP_NUM_THREADS") != nullptr) return;
  auto const cores = static_cast<int>(std::thread::hardware_concurrency());
  at::set_num_threads(std::max(1, cores / std::max(1, launch.local_size)));
}

void describe(Settings const& settings, Session const& session, DataSet const& data,
              RunLength const& length, int ranks, Log const& log) {
  std::int64_t trained = 0;
  std::int64_t all = 0;
  for (auto const& arena : session.arenas) trained += arena.size();
  for (auto const& parameter : session.model->parameters()) all += parameter.slot->numel();
  log(text("model: ", session.directory.string(), ", ", all, " parameters, ", trained, " trained (",
           settings.trainable.tuner, ")"));
  log(text("data: ", data.rows(), " rows; ", ranks, " ranks; a step is ", length.global_batch_size,
           " rows; ", length.steps_per_epoch, " steps an epoch, ", length.total_steps, " in all"));
  log(text("limits: ", settings.data.max_length, " tokens a pair, pictures ",
           settings.data.image_min_tokens, " to ", settings.data.image_max_tokens, " tokens"));
}

/// Stage 3's meaning here is told, not left to be guessed.
void explain_stage(Settings const& settings, int ranks, Log const& log) {
  if (settings.parallel.zero == "3" && ranks > 1)
    log("notice: --zero 3 on CPU ranks divides optimizer state and gradients; each rank keeps the "
        "whole weights");
}

void write_plan(Settings const& settings, RunLength const& length, int ranks) {
  write_file(
      fs::path(settings.run.output_dir) / "plan.json",
      text("{\n  \"ranks\": ", ranks, ",\n  \"global_batch_size\": ", length.global_batch_size,
           ",\n  \"gradient_accumulation_steps\": ", length.accumulation,
           ",\n  \"steps_per_epoch\": ", length.steps_per_epoch,
           ",\n  \"max_steps\": ", length.total_steps, ",\n  \"zero\": \"", settings.parallel.zero,
           "\",\n  \"recompute\": \"", settings.parallel.recompute, "\"\n}\n"));
}

}  // namespace

int run_train(Settings const& settings, Launch const& launch) {
  auto& control = launch.control;
  VLR_USAGE(!settings.run.overwrite || settings.run.resume == "never",
            "--overwrite and --resume exclude each other", "give one of them");
  share_cores(launch);
  Log const log = [&](std::string const& line) {
    if (control.is_root()) std::printf("%s\n", line.c_str());
  };
  auto session = open_session(settings, Purpose::training, 128 * control.size(), environment, log);
  auto const cache = settings.data.cache_dir;
  auto data = open_data(settings.data.dataset, settings, session.tokenizer, cache, control);
  std::optional<DataSet> validation;
  if (!settings.data.val_dataset.empty()) {
    validation = open_data(settings.data.val_dataset, settings, session.tokenizer, cache, control);
  } else if (settings.data.split_dataset_ratio > 0) {
    auto parts = data.split(settings.data.split_dataset_ratio, settings.run.seed);
    data = std::move(parts.first);
    validation = std::move(parts.second);
  }
  auto const length = run_length(settings, data.rows(), control.size());

  RunDirectory directory(settings.run.output_dir);
  auto const resumed = checkpoint_to_resume(settings);
  if (control.is_root())
    directory = RunDirectory::create(settings.run.output_dir, existing_of(settings));
  control.barrier();
  describe(settings, session, data, length, control.size(), log);
  explain_stage(settings, control.size(), log);
  if (control.is_root()) print_sample(data, session.tokenizer, log);

  auto const first = resumed ? read_trainer_state(*resumed).step : 0;
  if (first >= length.total_steps) {
    log(text("nothing to do: ", settings.run.output_dir, " has all ", length.total_steps,
             " steps"));
    return 0;
  }
  TrainLog train_log(control.is_root(), directory.path(), settings, first);
  Trainer trainer(settings, session, data, validation ? &*validation : nullptr, control, directory,
                  train_log);
  if (resumed) {
    trainer.resume(*resumed);
    train_log.line(text("resumed from ", resumed->string()));
  }
  if (control.is_root()) {
    write_file(directory.path() / "config.json", to_json("train", settings));
    write_plan(settings, length, control.size());
  }
  return static_cast<int>(trainer.run());
}

}  // namespace vlrerank
