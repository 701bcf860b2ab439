// train/schedule.cpp -- warm-up and decay.
#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace vlrerank {
namespace {

/// From 1 at t = 0 to `least` at t = 1 along half a cosine.
double half_cosine(double t, double least) {
  return least + (1 - least) * (1 + std::cos(std::numbers::pi * std::clamp(t, 0.0, 1.0))) / 2;
}

}  // namespace

std::int64_t warmup_steps(ScheduleSettings const& settings, std::int64_t total_steps) {
  if (settings.warmup_steps > 0) return settings.warmup_steps;
  // The product is nudged down so that 0.1 * 30 gives 3 steps, not 4.
  auto const exact = settings.warmup_ratio * static_cast<double>(total_steps);
  return static_cast<std::int64_t>(std::ceil(exact - 1e-9 * std::max(1.0, exact)));
}

double learning_rate_factor(ScheduleSettings const& settings, double peak, std::int64_t step,
                            std::int64_t total_steps) {
  auto const warmup = warmup_steps(settings, total_steps);
  auto const& kind = settings.kind;
  if (kind == "constant") return 1;
  if (step < warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  if (kind == "constant_with_warmup") return 1;

  double const least = peak > 0 ? settings.min_lr / peak : 0;
  double const span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup));
  double const t = std::clamp(static_cast<double>(step - warmup) / span, 0.0, 1.0);
  if (kind == "cosine") return half_cosine(t, 0);
  if (kind == "cosine_with_min_lr") return half_cosine(t, least);
  if (kind == "linear") return 1 - t;
  if (kind == "polynomial") return std::pow(1 - t, settings.power);
  if (kind == "inverse_sqrt") {
    double const timescale = warmup > 0 ? static_cast<double>(warmup) : 10'000.0;
    double const shift = timescale - static_cast<double>(warmup);
    return 1 / std::sqrt((static_cast<double>(step) + shift) / timescale);
  }
  if (kind == "warmup_stable_decay") {
    auto const decay = settings.decay_steps > 0 ? settings.decay_steps
                                                : std::max<std::int64_t>(1, (total_steps + 9) / 10);
    auto const begin = std::max(warmup, total_steps - decay);
    if (step < begin) return 1;
    return half_cosine(static_cast<double>(step - begin) / static_cast<double>(decay), least);
  }
  throw Error(Exit::usage, text("--lr-scheduler-type ", kind, " is unknown"),
              "run `vlrerank train --help` for the list", VLR_WHERE);
}

}  // namespace vlrerank
