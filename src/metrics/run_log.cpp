// metrics/run_log.cpp -- appends rows; cuts them off after a step when a run is resumed.
#include "metrics/run_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/files.hpp"

namespace vlrerank {
namespace {

/// The step of a row, or nothing when the line is no row.
std::optional<std::int64_t> step_of(std::string_view line) {
  auto const row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return std::nullopt;
  auto const step = row.find("step");
  if (step == row.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<std::int64_t>();
}

/// Complete rows up to and with `step`. Lines are kept as they are, byte by byte.
std::string rows_until(std::string_view content, std::int64_t step) {
  std::string kept;
  while (!content.empty()) {
    auto const end = content.find('\n');
    if (end == std::string_view::npos) break;  // the partial line of a crash
    auto const line = content.substr(0, end + 1);
    auto const found = step_of(line.substr(0, end));
    if (found && *found <= step) kept += line;
    content.remove_prefix(end + 1);
  }
  return kept;
}

std::string of_total(std::int64_t step, std::int64_t max_steps) {
  return fmt::format("{}/{}", step, max_steps);
}

}  // namespace

RunLog::RunLog(std::filesystem::path path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_io_error("open", path_, errno, 0, VLR_WHERE);
}

RunLog::RunLog(RunLog&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

RunLog::~RunLog() {
  if (fd_ >= 0) ::close(fd_);
}

RunLog RunLog::create(std::filesystem::path const& path) {
  write_file(path, "");
  return RunLog(path);
}

RunLog RunLog::resume(std::filesystem::path const& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return create(path);
  auto const content = read_file(path);
  auto const kept = rows_until(content, step);
  if (kept.size() != content.size()) write_file(path, kept);
  return RunLog(path);
}

void RunLog::write(LogRow const& row) {
  auto const line = to_json_line(row) + "\n";
  std::size_t done = 0;
  while (done < line.size()) {
    auto const count = ::write(fd_, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error("write", path_, errno, line.size() - done, VLR_WHERE);
    done += static_cast<std::size_t>(count);
  }
}

std::string to_json_line(LogRow const& row) {
  auto line = nlohmann::ordered_json::object();
  for (auto const& [key, value] : row)
    std::visit([&line, &name = key](auto const& each) { line[name] = each; }, value);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string duration_text(double seconds) {
  auto left = std::isfinite(seconds) && seconds > 0 ? std::llround(std::min(seconds, 1e12)) : 0LL;
  std::string out;
  for (auto const& [unit, length] : {std::pair{'d', 86400LL}, {'h', 3600LL}, {'m', 60LL}}) {
    if (left >= length || !out.empty()) out += fmt::format("{}{} ", left / length, unit);
    left %= length;
  }
  return out + fmt::format("{}s", left);
}

std::optional<double> remaining_seconds(TrainingReport const& report) {
  if (report.steps_done <= 0) return std::nullopt;
  auto const left = static_cast<double>(std::max<std::int64_t>(0, report.max_steps - report.step));
  return report.elapsed_seconds / report.steps_done * left;
}

LogRow training_row(TrainingReport const& report) {
  auto const left = remaining_seconds(report);
  LogRow row = {
      {"loss", report.loss},
      {"grad_norm", report.grad_norm},
      {"learning_rate", report.learning_rate},
      {"acc", report.acc},
      {"epoch", report.epoch},
      {"global_step/max_steps", of_total(report.step, report.max_steps)},
      {"elapsed_time", duration_text(report.elapsed_seconds)},
      {"remaining_time", left ? duration_text(*left) : std::string("unknown")},
      {"memory(GiB)", report.memory_gib},
      {"train_speed(s/it)",
       report.steps_done > 0 ? report.elapsed_seconds / report.steps_done : 0.0},
      {"pairs/s", report.pairs_per_second},
      {"tokens/s", report.tokens_per_second},
      {"step", report.step},
  };
  row.insert(row.end(), report.more.begin(), report.more.end());
  return row;
}

LogRow evaluation_row(EvaluationReport const& report, ranking::Metrics const& metrics) {
  LogRow row;
  if (report.loss) row.emplace_back("eval_loss", *report.loss);
  for (auto const& [name, value] : ranking::named_values(metrics))
    row.emplace_back("eval_" + name, value);
  row.emplace_back("eval_positive_mean", metrics.scores.positive_mean);
  row.emplace_back("eval_negative_mean", metrics.scores.negative_mean);
  row.emplace_back("eval_score_spread", metrics.scores.spread);
  row.emplace_back("eval_groups", metrics.groups);
  row.emplace_back("eval_groups_counted", metrics.counted);
  row.emplace_back("eval_runtime", report.seconds);
  row.emplace_back("eval_samples_per_second",
                   report.seconds > 0 ? static_cast<double>(metrics.groups) / report.seconds : 0.0);
  row.emplace_back("epoch", report.epoch);
  row.emplace_back("global_step/max_steps", of_total(report.step, report.max_steps));
  row.emplace_back("step", report.step);
  row.insert(row.end(), report.more.begin(), report.more.end());
  return row;
}

}  // namespace vlrerank
