// metrics/progress.cpp -- formats and writes progress.
#include "metrics/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "metrics/run_log.hpp"

namespace vlrerank {
namespace {

constexpr int kBarWidth = 20;
constexpr char const* kErase = "\r\x1b[K";  // to the line's beginning, and clear it

/// Three significant digits, thousands as k, millions as M.
std::string rate(double value) {
  if (value >= 999.5e3) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 999.5) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.3g}", value);
}

std::string figures(Progress const& progress) {
  std::string out;
  auto const add = [&out](std::string const& words) { out += (out.empty() ? "" : "  ") + words; };
  if (progress.loss) add(fmt::format("loss {:.4f}", *progress.loss));
  if (progress.learning_rate) add(fmt::format("lr {:.3g}", *progress.learning_rate));
  if (progress.grad_norm) add(fmt::format("grad_norm {:.3g}", *progress.grad_norm));
  if (progress.pairs_per_second) add(rate(*progress.pairs_per_second) + " pairs/s");
  if (progress.tokens_per_second) add(rate(*progress.tokens_per_second) + " tokens/s");
  if (progress.seconds_left) add("left " + duration_text(*progress.seconds_left));
  return out;
}

}  // namespace

std::string progress_line(Progress const& progress) {
  auto const rest = figures(progress);
  return fmt::format("step {}/{}{}{}", progress.step, progress.max_steps, rest.empty() ? "" : "  ",
                     rest);
}

std::string progress_bar(std::string_view title, Progress const& progress, int columns,
                         Color color) {
  auto const share = progress.max_steps > 0 ? static_cast<double>(progress.step) /
                                                  static_cast<double>(progress.max_steps)
                                            : 0.0;
  auto const filled = static_cast<int>(std::floor(std::clamp(share, 0.0, 1.0) * kBarWidth));
  auto const head = fmt::format("{} ", title);
  auto const bar = std::string(static_cast<std::size_t>(filled), '=') +
                   std::string(static_cast<std::size_t>(kBarWidth - filled), ' ');
  auto const rest = figures(progress);
  auto line = fmt::format("{}[{}] {}/{}{}{}", head, bar, progress.step, progress.max_steps,
                          rest.empty() ? "" : "  ", rest);
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(columns, 0))));
  auto const begin = head.size() + 1;
  auto const length = static_cast<std::size_t>(filled);
  if (color == Color::yes && length > 0 && line.size() >= begin + length) {
    line.insert(begin + length, "\x1b[0m");
    line.insert(begin, "\x1b[32m");
  }
  return line;
}

ProgressDisplay::ProgressDisplay(std::FILE* stream, ProgressStyle style, std::string title,
                                 int columns, Color color)
    : stream_(stream), style_(style), title_(std::move(title)), columns_(columns), color_(color) {}

ProgressDisplay::~ProgressDisplay() {
  if (!bar_.empty()) fmt::print(stream_, "\n");
}

void ProgressDisplay::show(Progress const& progress) {
  if (style_ == ProgressStyle::lines)
    fmt::print(stream_, "{} {}\n", title_, progress_line(progress));
  if (style_ == ProgressStyle::bar) {
    // The last column stays free: writing there makes some terminals wrap.
    bar_ = progress_bar(title_, progress, columns_ - 1, color_);
    fmt::print(stream_, "{}{}", kErase, bar_);
  }
  std::fflush(stream_);
}

void ProgressDisplay::message(std::string_view line) {
  if (bar_.empty())
    fmt::print(stream_, "{}\n", line);
  else
    fmt::print(stream_, "{}{}\n{}", kErase, line, bar_);
  std::fflush(stream_);
}

}  // namespace vlrerank
