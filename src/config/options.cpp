// config/options.cpp -- a command line becomes resolved settings.
#include "config/options.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/reader.hpp"
#include "config/table.hpp"

namespace vlrerank {

Parsed parse_options(std::string const& command, std::vector<std::string> const& arguments,
                     Environment const& environment) {
  Parsed parsed;
  Reader reader(find_command(command), parsed);
  reader.read_command_line(arguments);
  if (parsed.help) return parsed;
  reader.read_environment(environment);
  reader.check();
  for (auto& line : launch_notices(command, environment)) parsed.notices.push_back(std::move(line));
  resolve(parsed.settings, command);
  return parsed;
}

void resolve(Settings& settings, std::string const& command) {
  auto& optimizer = settings.optimizer;
  if (optimizer.learning_rate < 0)
    optimizer.learning_rate = settings.trainable.tuner == "full" ? 1e-5 : 1e-4;
  if (optimizer.vit_lr < 0) optimizer.vit_lr = optimizer.learning_rate;
  if (optimizer.aligner_lr < 0) optimizer.aligner_lr = optimizer.learning_rate;
  auto& schedule = settings.schedule;
  if (schedule.min_lr_rate >= 0) schedule.min_lr = schedule.min_lr_rate * optimizer.learning_rate;
  schedule.min_lr_rate = -1;

  auto& run = settings.run;
  bool const validates =
      !settings.data.val_dataset.empty() || settings.data.split_dataset_ratio > 0;
  if (run.eval_strategy == "auto") run.eval_strategy = validates ? "steps" : "no";
  if (run.eval_steps == 0) run.eval_steps = run.save_steps;
  if (run.seed_data < 0) run.seed_data = static_cast<std::int64_t>(run.seed);
  if (auto const sign = run.metric_for_best_model.find('@'); sign != std::string::npos) {
    auto& at = settings.eval.at;
    auto const cutoff = std::stoi(run.metric_for_best_model.substr(sign + 1));
    if (std::find(at.begin(), at.end(), cutoff) == at.end())
      at.insert(std::upper_bound(at.begin(), at.end(), cutoff), cutoff);
  }
  if (settings.data.cache_dir.empty() && command == "eval")
    settings.data.cache_dir = ".vlrerank-cache";
  if (settings.data.cache_dir.empty() && (command == "train" || command == "check")) {
    auto const run_directory =
        std::filesystem::absolute(run.output_dir + "/").lexically_normal().parent_path();
    settings.data.cache_dir = (run_directory.parent_path() / ".vlrerank-cache").string();
  }
}

}  // namespace vlrerank
