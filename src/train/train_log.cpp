// train/train_log.cpp -- one event, three places.
#include "train/train_log.hpp"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "metrics/bootstrap.hpp"
#include "metrics/progress.hpp"
#include "metrics/run_log.hpp"
#include "metrics/tensorboard.hpp"

namespace vlrerank {
namespace {

using Clock = std::chrono::steady_clock;

ProgressStyle style_of(std::string const& asked) {
  if (asked == "off") return ProgressStyle::off;
  // Under mpirun standard output is a pseudo terminal even when redirected: standard error tells.
  return isatty(STDERR_FILENO) == 1 ? ProgressStyle::bar : ProgressStyle::lines;
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

double peak_memory_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // ru_maxrss is in KiB
}

}  // namespace

void add(StepTotals& totals, StepTotals const& step) {
  totals.steps += step.steps;
  totals.loss += step.loss;
  totals.correct += step.correct;
  totals.count += step.count;
  totals.pairs += step.pairs;
  totals.tokens += step.tokens;
  totals.data_wait += step.data_wait;
  totals.seconds += step.seconds;
  totals.grad_norm = step.grad_norm;
  totals.learning_rate = step.learning_rate;
}

struct TrainLog::State {
  State(std::filesystem::path const& directory, Settings const& settings, std::int64_t first_step)
      : rows(first_step > 0 ? RunLog::resume(directory / "metrics.jsonl", first_step)
                            : RunLog::create(directory / "metrics.jsonl")),
        events(directory, first_step),
        display(style_of(settings.run.progress) == ProgressStyle::bar ? stderr : stdout,
                style_of(settings.run.progress), "train", terminal_columns(), Color::no),
        seed(settings.run.seed),
        bootstrap(settings.eval.bootstrap) {}

  RunLog rows;
  TensorBoardWriter events;
  ProgressDisplay display;
  std::uint64_t seed;
  std::int32_t bootstrap;
  Clock::time_point begin = Clock::now();
  double steps_done = 0;
};

TrainLog::TrainLog(bool active, std::filesystem::path const& directory, Settings const& settings,
                   std::int64_t first_step) {
  if (active) state_ = std::make_unique<State>(directory, settings, first_step);
}

TrainLog::~TrainLog() = default;

void TrainLog::line(std::string const& text) {
  if (!state_) return;
  state_->display.message(text);
}

void TrainLog::note(std::string const& tag, std::string const& markdown) {
  if (state_) state_->events.note(tag, 0, markdown);
}

void TrainLog::step(std::int64_t step, std::int64_t total_steps, double epoch,
                    StepTotals const& totals) {
  if (!state_) return;
  auto& s = *state_;
  s.steps_done += static_cast<double>(totals.steps);
  TrainingReport report;
  report.step = step;
  report.max_steps = total_steps;
  report.epoch = epoch;
  report.loss = totals.loss / static_cast<double>(std::max<std::int64_t>(1, totals.steps));
  report.grad_norm = totals.grad_norm;
  report.learning_rate = totals.learning_rate;
  report.acc = totals.count > 0 ? totals.correct / totals.count : 0;
  report.elapsed_seconds = std::chrono::duration<double>(Clock::now() - s.begin).count();
  report.steps_done = s.steps_done;
  report.memory_gib = peak_memory_gib();
  report.pairs_per_second = totals.seconds > 0 ? totals.pairs / totals.seconds : 0;
  report.tokens_per_second = totals.seconds > 0 ? totals.tokens / totals.seconds : 0;
  report.more = {{"data_wait", totals.data_wait}};
  s.rows.write(training_row(report));
  s.events.scalar("train/loss", step, report.loss);
  s.events.scalar("train/grad_norm", step, report.grad_norm);
  s.events.scalar("train/learning_rate", step, report.learning_rate);
  s.events.scalar("train/acc", step, report.acc);
  s.events.scalar("train/epoch", step, epoch);
  s.events.scalar("speed/pairs_per_second", step, report.pairs_per_second);
  s.events.scalar("speed/tokens_per_second", step, report.tokens_per_second);

  Progress progress;
  progress.step = step;
  progress.max_steps = total_steps;
  progress.loss = report.loss;
  progress.learning_rate = report.learning_rate;
  progress.grad_norm = report.grad_norm;
  progress.pairs_per_second = report.pairs_per_second;
  progress.tokens_per_second = report.tokens_per_second;
  progress.seconds_left = remaining_seconds(report);
  s.display.show(progress);
}

void TrainLog::evaluation(std::int64_t step, std::int64_t total_steps, double epoch,
                          Evaluation const& now, Evaluation const* base) {
  if (!state_) return;
  auto& s = *state_;
  EvaluationReport report;
  report.step = step;
  report.max_steps = total_steps;
  report.epoch = epoch;
  report.loss = now.loss;
  report.seconds = now.seconds;
  auto const& m = now.metrics;
  auto line = fmt::format(
      "evaluation at step {}: mrr {:.4f}  ndcg {:.4f}  loss {:.4f}  acc {:.4f}  ({} rows, {} "
      "ranked)",
      step, m.mrr, m.ndcg, now.loss, m.accuracy, m.groups, m.counted);
  if (base != nullptr) {
    auto const change = ranking::mrr_difference(base->groups, now.groups, s.bootstrap, s.seed);
    line += fmt::format("; mrr {:+.4f} [{:+.4f}, {:+.4f}] from the base model", change.mean,
                        change.low, change.high);
    report.more = {{"eval_mrr_change", change.mean},
                   {"eval_mrr_change_low", change.low},
                   {"eval_mrr_change_high", change.high}};
  }
  s.rows.write(evaluation_row(report, m));
  s.events.scalar("eval/loss", step, now.loss);
  for (auto const& [name, value] : ranking::named_values(m))
    s.events.scalar("eval/" + name, step, value);
  s.display.message(line);
  if (m.scores.collapsed)
    s.display.message(fmt::format(
        "warning: the scores have collapsed: all probabilities within 0.001 (positives' mean logit "
        "{:.3f}, negatives' {:.3f}); lower --learning-rate or look at the data",
        m.scores.positive_mean, m.scores.negative_mean));
  if (base != nullptr && m.mrr < base->metrics.mrr)
    s.display.message("warning: the model ranks worse than the untouched base model");
}

}  // namespace vlrerank
