// app/prepare.cpp -- `vlrerank prepare`: JSON lines to shards, and a short account of it.
#include "prepare/prepare.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "app/commands.hpp"
#include "app/environment.hpp"
#include "metrics/progress.hpp"
#include "train/session.hpp"

namespace vlrerank {
namespace {

/// Shows the root rank's share of the blocks: a bar on a terminal; elsewhere a line at most every
/// ten seconds.
class BlockProgress {
 public:
  explicit BlockProgress(std::string const& wish) {
    bool const terminal = ::isatty(STDERR_FILENO) == 1;
    auto const style = wish == "off"                                  ? ProgressStyle::off
                       : wish == "on" || (wish == "auto" && terminal) ? ProgressStyle::bar
                                                                      : ProgressStyle::lines;
    interval_ = style == ProgressStyle::bar ? 0.1 : 10;
    display_ = std::make_unique<ProgressDisplay>(stderr, style, "prepare", 80, Color::no);
  }

  void show(std::int64_t done, std::int64_t all) {
    auto const now = seconds();
    if (done != all && now - shown_ < interval_) return;
    if (done == all && shown_ == 0 && interval_ > 1) return;  // over before the first line
    shown_ = now;
    Progress progress;
    progress.step = done;
    progress.max_steps = all;
    progress.seconds_left = now / static_cast<double>(done) * static_cast<double>(all - done);
    display_->show(progress);
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::unique_ptr<ProgressDisplay> display_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double interval_ = 10;
  double shown_ = 0;
};

/// "12.3".
std::string tenths(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  return digits;
}

std::string summary(PrepareResult const& result, std::string const& output, double seconds) {
  auto const& report = result.report;
  std::uint64_t bytes = 0;
  std::int64_t images = 0;
  for (auto const& shard : result.shards) {
    bytes += shard.bytes;
    images += shard.images;
  }
  std::string forms;
  for (auto const& [form, rows] : report.forms)
    forms += text(forms.empty() ? "" : ", ", rows, " ", form);
  std::string out =
      text(report.rows, " rows (", forms, "), ", report.pairs, " pairs, ", report.tokens,
           " tokens, ", report.media, " pictures and videos (", images, " distinct)\n");
  if (report.cut_pairs > 0)
    out += text("cut: ", report.cut_pairs, " pairs in ", report.cut_rows, " rows, ",
                report.cut_tokens, " tokens\n");
  if (report.duplicates + report.conflicts > 0)
    out += text("dropped: ", report.duplicates, " documents listed twice, ", report.conflicts,
                " listed as positive and negative\n");
  if (report.bad_rows > 0) {
    out += text("bad rows left out: ", report.bad_rows, "\n");
    for (auto const& bad : report.first_bad) out += text("  ", bad.text(), "\n");
  }
  if (report.cut_rows + report.bad_rows + report.warned_rows > 0)
    out += text("row by row: ", output, "/prepare-rows.jsonl\n");
  auto const* how = result.cached    ? "found as it was"
                    : result.resumed ? "finished what was begun"
                                     : "made";
  out += text(output, ": ", result.shards.size(), " shards, ",
              tenths(static_cast<double>(bytes) / (1 << 20)), " MiB, ", how, " in ",
              tenths(seconds), " s\n");
  return out;
}

}  // namespace

int run_prepare(Settings const& settings, Communicator& control) {
  auto const directory = find_model(settings.model.model, environment);
  auto const tokenizer = Tokenizer::load(directory);
  auto request = prepare_request(settings.data, settings.run.seed, tokenizer);
  request.inputs = settings.data.dataset;
  request.output = settings.output;
  request.overwrite = settings.run.overwrite;

  BlockProgress progress(control.is_root() ? settings.run.progress : "off");
  request.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  auto const result = prepare(request, control);
  if (control.is_root())
    std::fputs(summary(result, settings.output, progress.seconds()).c_str(), stdout);
  return 0;
}

}  // namespace vlrerank
