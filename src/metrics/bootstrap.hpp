// metrics/bootstrap.hpp -- how far a mean over queries could be off by the choice of queries.
#pragma once

#include <cstdint>
#include <vector>

#include "metrics/ranking.hpp"

namespace vlrerank::ranking {

/// A mean and the 95 % interval of its bootstrap distribution (percentiles).
struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// Draws values.size() values with replacement, `resamples` times; a function of its arguments
/// alone. Without values all is 0; without resamples the interval is the mean.
/// Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
Interval bootstrap_mean(std::vector<double> const& values, std::int32_t resamples,
                        std::uint64_t seed);

/// MRR over the counted groups.
Interval mrr_interval(std::vector<RankedGroup> const& groups, std::int32_t resamples,
                      std::uint64_t seed);

/// MRR of `after` minus MRR of `before`, drawn by query: both score the same documents in the same
/// order, and what a query adds to both cancels. Throws Error (exit 70) when they do not.
Interval mrr_difference(std::vector<RankedGroup> const& before,
                        std::vector<RankedGroup> const& after, std::int32_t resamples,
                        std::uint64_t seed);

}  // namespace vlrerank::ranking
