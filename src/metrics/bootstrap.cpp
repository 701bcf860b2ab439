// metrics/bootstrap.cpp -- percentile intervals from resampled queries.
#include "metrics/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"

namespace vlrerank::ranking {
namespace {

constexpr double kTail = 0.025;  // outside the interval, on each side

double mean_of(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Linear between the two nearest order statistics.
double quantile(std::vector<double> const& sorted, double share) {
  auto const place = share * static_cast<double>(sorted.size() - 1);
  auto const below = static_cast<std::size_t>(place);
  auto const above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

}  // namespace

Interval bootstrap_mean(std::vector<double> const& values, std::int32_t resamples,
                        std::uint64_t seed) {
  if (values.empty()) return {};
  auto const mean = mean_of(values);
  if (resamples <= 0) return {mean, mean, mean};
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (std::size_t i = 0; i < means.size(); ++i) {
    KeyedRandom random(seed, i);
    double sum = 0;
    for (std::size_t j = 0; j < values.size(); ++j) sum += values[random.below(values.size())];
    means[i] = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return {mean, quantile(means, kTail), quantile(means, 1 - kTail)};
}

Interval mrr_interval(std::vector<RankedGroup> const& groups, std::int32_t resamples,
                      std::uint64_t seed) {
  std::vector<double> values;
  for (auto const& group : groups)
    if (auto const one = group_metrics(group, {}); one.counted) values.push_back(one.mrr);
  return bootstrap_mean(values, resamples, seed);
}

Interval mrr_difference(std::vector<RankedGroup> const& before,
                        std::vector<RankedGroup> const& after, std::int32_t resamples,
                        std::uint64_t seed) {
  VLR_REQUIRE(before.size() == after.size(),
              text("scores of ", before.size(), " groups are compared with ", after.size()),
              "this is a bug in the caller: pass the same groups twice");
  std::vector<double> values;
  for (std::size_t i = 0; i < before.size(); ++i) {
    VLR_REQUIRE(before[i].labels == after[i].labels, text("group ", i, " has other labels"),
                "this is a bug in the caller: pass the same groups twice");
    auto const old_one = group_metrics(before[i], {});
    if (old_one.counted) values.push_back(group_metrics(after[i], {}).mrr - old_one.mrr);
  }
  return bootstrap_mean(values, resamples, seed);
}

}  // namespace vlrerank::ranking
