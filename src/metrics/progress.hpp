// metrics/progress.hpp -- what a person sees while a run goes on: a bar on a terminal, plain lines
// elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace vlrerank {

struct Progress {
  std::int64_t step = 0;
  std::int64_t max_steps = 0;
  std::optional<double> loss;
  std::optional<double> learning_rate;
  std::optional<double> grad_norm;
  std::optional<double> pairs_per_second;
  std::optional<double> tokens_per_second;
  std::optional<double> seconds_left;
};

enum class Color { no, yes };
enum class ProgressStyle { bar, lines, off };

/// "step 20/1970  loss 0.5312  lr 4.9e-05  grad_norm 1.23  120 pairs/s  35.2k tokens/s  left 51m
/// 26s"; what is not known is left out.
std::string progress_line(Progress const& progress);

/// A bar and the same, at most `columns` wide (escape sequences not counted).
std::string progress_bar(std::string_view title, Progress const& progress, int columns,
                         Color color);

/// Writes progress to a stream and keeps other messages apart from the bar.
class ProgressDisplay {
 public:
  /// @param columns  of the terminal
  ProgressDisplay(std::FILE* stream, ProgressStyle style, std::string title, int columns,
                  Color color);
  ProgressDisplay(ProgressDisplay const&) = delete;
  ProgressDisplay& operator=(ProgressDisplay const&) = delete;
  /// Ends an unfinished bar with a line feed.
  ~ProgressDisplay();

  void show(Progress const& progress);
  /// A line of its own; a bar moves below it.
  void message(std::string_view line);

 private:
  std::FILE* stream_;
  ProgressStyle style_;
  std::string title_;
  int columns_;
  Color color_;
  std::string bar_;  // as on the screen now
};

}  // namespace vlrerank
