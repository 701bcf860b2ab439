// config/nearest.cpp -- edit distance over names of options and commands.
#include "config/nearest.hpp"

#include <algorithm>
#include <cstddef>

namespace vlrerank {
namespace {

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// Optimal string alignment distance; O(|a| |b|).
std::size_t edit_distance(std::string const& a, std::string const& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      auto const replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replaced, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string const& name, std::vector<std::string> const& candidates) {
  auto const wanted = with_dashes(name);
  std::string best;
  std::size_t best_distance = 0;
  for (auto const& candidate : candidates) {
    auto const distance = edit_distance(wanted, with_dashes(candidate));
    auto const allowed = std::max<std::size_t>(2, std::max(wanted.size(), candidate.size()) / 3);
    if (distance > allowed || distance >= std::max(wanted.size(), candidate.size())) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace vlrerank
