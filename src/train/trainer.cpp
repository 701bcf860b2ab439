// train/trainer.cpp -- one optimizer step after another.
#include "train/trainer.hpp"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>

#include "train/micro_step.hpp"
#include "train/save.hpp"
#include "train/schedule.hpp"
#include "train/signals.hpp"

namespace vlrerank {
namespace {

constexpr std::int64_t cpu_micro_batch_tokens = 8192;

std::int64_t micro_batch_tokens(Settings const& settings) {
  auto const asked = settings.batch.micro_batch_tokens;
  return asked > 0 ? asked : cpu_micro_batch_tokens;
}

/// CPU ranks keep whole weights: stage 3 divides what stage 2 does.
ZeroStage stage_of(std::string const& zero, int ranks) {
  if (ranks == 1 || zero == "0") return ZeroStage::replicated;
  return zero == "1" ? ZeroStage::optimizer : ZeroStage::gradients;
}

PlanSettings plan_settings(Settings const& settings, RunLength const& length, int ranks) {
  PlanSettings plan;
  plan.global_batch_size = length.global_batch_size;
  plan.window = settings.batch.per_device_train_batch_size;
  plan.micro_batch_tokens = micro_batch_tokens(settings);
  plan.max_positives = settings.data.max_positives;
  plan.max_negatives = settings.data.max_negatives;
  plan.seed = settings.run.seed_data >= 0 ? static_cast<std::uint64_t>(settings.run.seed_data)
                                          : settings.run.seed;
  plan.shuffle = settings.data.shuffle;
  plan.drop_last = settings.batch.drop_last;
  plan.share_prefix = settings.batch.share_prefix;
  plan.listwise = settings.loss.kind == "listwise";
  plan.min_group_size = settings.loss.min_group_size;
  plan.sum_of_means = settings.loss.reduction == "sum-of-means";
  plan.replicas = ranks;
  return plan;
}

double peak_learning_rate(Settings const& settings) {
  return settings.optimizer.learning_rate;
}

bool due(std::string const& strategy, std::int64_t every, std::int64_t step,
         RunLength const& length) {
  if (strategy == "no") return false;
  if (strategy == "epoch") return step % length.steps_per_epoch == 0;
  return every > 0 && step % every == 0;
}

}  // namespace

RunLength run_length(Settings const& settings, std::int64_t rows, int ranks) {
  auto const& batch = settings.batch;
  std::int64_t const per_device = batch.per_device_train_batch_size;
  RunLength length;
  length.accumulation = batch.gradient_accumulation_steps > 0
                            ? batch.gradient_accumulation_steps
                            : (16 + per_device * ranks - 1) / (per_device * ranks);
  length.global_batch_size = batch.global_batch_size > 0 ? batch.global_batch_size
                                                         : per_device * length.accumulation * ranks;
  length.steps_per_epoch = batch.drop_last
                               ? rows / length.global_batch_size
                               : (rows + length.global_batch_size - 1) / length.global_batch_size;
  VLR_USAGE(length.steps_per_epoch > 0,
            text("no optimizer step: ", rows, " rows, a step takes ", length.global_batch_size,
                 " (per device ", per_device, " x accumulation ", length.accumulation, " x ranks ",
                 ranks, ")", batch.drop_last ? " and incomplete steps are dropped" : ""),
            "lower --gradient-accumulation-steps, give --global-batch-size, or leave out "
            "--dataloader-drop-last");
  length.total_steps =
      settings.run.max_steps > 0
          ? settings.run.max_steps
          : static_cast<std::int64_t>(std::ceil(
                settings.run.epochs * static_cast<double>(length.steps_per_epoch) - 1e-9));
  VLR_USAGE(length.total_steps > 0, text("no optimizer step in ", settings.run.epochs, " epochs"),
            "raise --num-train-epochs or give --max-steps");
  return length;
}

Trainer::Trainer(Settings const& settings, Session& session, DataSet const& data,
                 DataSet const* validation, Communicator& control, RunDirectory const& directory,
                 TrainLog& log)
    : settings_(settings),
      session_(session),
      data_(data),
      validation_(validation),
      control_(control),
      directory_(directory),
      log_(log),
      length_(run_length(settings, data.rows(), control.size())),
      plan_settings_(plan_settings(settings, length_, control.size())),
      loss_(loss_parameters(settings.loss)),
      optimizer_(session.arenas, control, settings.optimizer,
                 stage_of(settings.parallel.zero, control.size())) {
  state_.total_steps = length_.total_steps;
  state_.global_batch_size = length_.global_batch_size;
  state_.rows = data.rows();
  state_.seed = settings.run.seed;
  state_.metric_for_best_model = settings.run.metric_for_best_model;
}

void Trainer::resume(std::filesystem::path const& checkpoint) {
  auto const old = read_trainer_state(checkpoint);
  VLR_USAGE(old.rows == state_.rows && old.global_batch_size == state_.global_batch_size &&
                old.seed == state_.seed,
            text(checkpoint.string(), " was made with ", old.rows, " rows, ", old.global_batch_size,
                 " rows a step and seed ", old.seed, "; this run has ", state_.rows, ", ",
                 state_.global_batch_size, " and ", state_.seed),
            "give the same data, batch sizes and seed (--global-batch-size keeps the step on other "
            "numbers of ranks), or start anew with --adapter");
  load_trained(checkpoint, session_);
  read_optimizer(checkpoint, session_.arenas, optimizer_);
  optimizer_.set_steps(old.optimizer_steps);
  auto const total = state_.total_steps;
  state_ = old;
  state_.total_steps = total;
  auto const& metric = settings_.run.metric_for_best_model;
  if (state_.metric_for_best_model != metric) {  // values of two metrics are not compared
    state_.metric_for_best_model = metric;
    state_.best_metric.reset();
    state_.best_step.reset();
  }
}

bool Trainer::stop_requested() {
  return all_reduce_value(control_, StopSignals::count(), Reduce::max) > 0;
}

Exit Trainer::run() {
  StopSignals const signals;
  if (validation_ != nullptr && settings_.run.eval_on_start && state_.step == 0) evaluate(0);

  auto const first = state_.step;
  TrainPlan const plan(data_, plan_settings_);
  TrainPlan const ahead(data_, plan_settings_);  // the loader's own: planning caches an epoch
  auto const rank = control_.rank();
  auto const ranks = control_.size();
  Loader loader(data_, session_.prompt_ids, settings_.batch.share_prefix,
                [&](std::int64_t number) -> std::optional<std::vector<MicroBatch>> {
                  if (first + number >= length_.total_steps) return std::nullopt;
                  return ahead.step(first + number, rank, ranks).mine;
                });
  while (state_.step < length_.total_steps) {
    auto const step_plan = plan.step(state_.step, rank, ranks);
    train_step(step_plan, loader);
    auto const done = state_.step;
    state_.epoch = step_plan.progress;
    bool const last = done == length_.total_steps;
    if (last || done % std::max<std::int64_t>(1, settings_.run.logging_steps) == 0 || done == 1)
      log_step(done, step_plan.progress);
    auto const& run = settings_.run;
    bool const evaluating = validation_ != nullptr && run.eval_strategy != "no";
    if (evaluating && (last || due(run.eval_strategy, run.eval_steps, done, length_)))
      evaluate(done);
    if (run.save_strategy != "no" &&
        (last || due(run.save_strategy, run.save_steps, done, length_)))
      save(done);
    if (!last && stop_requested()) {
      if (saved_step_ != done) save(done);
      log_.line(text("stopped on request after step ", done, " of ", length_.total_steps,
                     "; go on with --resume auto"));
      return Exit::requeue;
    }
  }
  return Exit::done;
}

void Trainer::train_step(StepPlan const& plan, Loader& loader) {
  auto const begin = std::chrono::steady_clock::now();
  ForwardContext context;
  context.training = true;
  context.seed = settings_.run.seed;
  context.step = plan.step;
  context.recomputed_layers = settings_.parallel.recompute == "full" ? 1 << 20 : 0;
  auto sums = at::zeros({4}, at::TensorOptions().dtype(at::kDouble).device(session_.device));
  double tokens = 0;
  double pictures = 0;
  for (std::size_t i = 0; i < plan.mine.size(); ++i) {
    auto const loaded = loader.next();
    auto const step = micro_step(session_, loaded, loss_, context);
    if (hooks_.scored) hooks_.scored(plan.step, step.batch, step.scores);
    auto const& result = step.result;
    auto const pairs = at::full({}, static_cast<double>(step.batch.sequences()), sums.options());
    sums.add_(at::stack({result.loss, result.correct, result.count, pairs}));
    tokens += static_cast<double>(step.batch.tokens());
    pictures += static_cast<double>(step.batch.grids.size());
  }
  auto host = at::cat({sums.cpu(), at::tensor({tokens, pictures}, at::kDouble)});
  control_.all_reduce(host, Reduce::sum).wait();
  auto const* values = host.const_data_ptr<double>();

  double const factor = learning_rate_factor(settings_.schedule, peak_learning_rate(settings_),
                                             plan.step, length_.total_steps);
  auto const& rates = settings_.optimizer;
  auto rate = [&](double own) { return factor * (own >= 0 ? own : rates.learning_rate); };
  StepRates const step_rates{rate(rates.learning_rate), rate(rates.vit_lr), rate(rates.aligner_lr)};
  double const grad_norm =
      optimizer_.step(step_rates, values[5] > 0 ? Pictures::some : Pictures::none);
  bool const finite = std::isfinite(values[0]) && std::isfinite(grad_norm);
  if (!finite) skip_bad_step(plan, values[0], grad_norm);
  bad_steps_ = finite ? 0 : bad_steps_;
  StepTotals totals;
  totals.steps = 1;
  totals.loss = values[0];
  totals.correct = values[1];
  totals.count = values[2];
  totals.pairs = values[3];
  totals.tokens = values[4];
  totals.grad_norm = grad_norm;
  totals.learning_rate = step_rates.base;
  totals.data_wait = loader.take_wait();
  totals.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (hooks_.stepped) hooks_.stepped(plan.step, totals);
  add(totals_, totals);
  state_.step = plan.step + 1;
  state_.optimizer_steps = optimizer_.steps();
}

void Trainer::skip_bad_step(StepPlan const& plan, double loss, double grad_norm) {
  ++bad_steps_;
  std::string rows;
  for (auto const row : plan.row_numbers) rows += text(rows.empty() ? "" : " ", row);
  auto const what = text("step ", plan.step + 1, ": loss ", loss, ", gradient norm ", grad_norm,
                         "; nothing was updated (rows ", rows, ")");
  VLR_CHECK_(Exit::diverged, bad_steps_ <= settings_.run.max_bad_steps,
             text(what, ", ", bad_steps_, " such steps in a row"),
             "lower --learning-rate, or resume from the last checkpoint with other settings");
  log_.line("warning: " + what);
}

void Trainer::log_step(std::int64_t step, double progress) {
  log_.step(step, length_.total_steps, progress, totals_);
  state_.seconds += totals_.seconds;
  totals_ = StepTotals();
}

void Trainer::evaluate(std::int64_t step) {
  auto const begin = std::chrono::steady_clock::now();
  auto const rows = score_rows(session_, *validation_, micro_batch_tokens(settings_),
                               settings_.batch.share_prefix, control_);
  if (hooks_.evaluated) hooks_.evaluated(step, rows);
  newest_ = evaluation_of(rows, loss_, settings_.eval.at);
  newest_->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  evaluated_step_ = step;
  if (step == 0) base_ = newest_;
  log_.evaluation(step, length_.total_steps, state_.epoch, *newest_,
                  step > 0 && base_ ? &*base_ : nullptr);
}

void Trainer::save(std::int64_t step) {
  auto const& metric = settings_.run.metric_for_best_model;
  bool best = validation_ == nullptr || settings_.run.eval_strategy == "no";
  if (evaluated_step_ == step) {
    double const value = figure(*newest_, metric);
    bool const greater = ranking::greater_is_better(metric);
    if (!state_.best_metric ||
        (greater ? value > *state_.best_metric : value < *state_.best_metric)) {
      state_.best_metric = value;
      state_.best_step = step;
      best = true;
    }
  }
  save_checkpoint(step, best ? IsBest::yes : IsBest::no, settings_, session_, state_, optimizer_,
                  directory_, control_);
  saved_step_ = step;
  log_.line(text("saved ", directory_.checkpoint(step).string()));
}

}  // namespace vlrerank
