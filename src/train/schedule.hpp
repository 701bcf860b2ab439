// train/schedule.hpp -- the learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "config/settings.hpp"

namespace vlrerank {

/// Steps of linear warm-up: the given number, or the ratio of all steps rounded up.
std::int64_t warmup_steps(ScheduleSettings const& settings, std::int64_t total_steps);

/// Factor on the peak learning rate in step `step` (0-based) of `total_steps`.
///
/// Warm-up is linear from 0: the first step of a run with warm-up changes nothing. After it, with
/// t = (step - warmup) / (total - warmup):
/// cosine (1 + cos(pi t)) / 2; linear 1 - t; constant 1; polynomial (1 - t)^power;
/// inverse_sqrt sqrt(warmup / step) with at least 10,000 warm-up-equivalents, as transformers has
/// it; cosine_with_min_lr between 1 and min; warmup_stable_decay 1, then a cosine to min over the
/// last decay_steps.
///
/// @param peak  the peak learning rate, which settings.min_lr is compared with
double learning_rate_factor(ScheduleSettings const& settings, double peak, std::int64_t step,
                            std::int64_t total_steps);

}  // namespace vlrerank
