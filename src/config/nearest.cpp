// config/nearest.cpp -- edit distance over names of options and commands.
#include "config/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>

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

/// Whether every word between dashes of `name` is one of `candidate`'s: num-epochs,
/// num-train-epochs.
bool has_all_words(std::string const& name, std::string const& candidate) {
  std::istringstream words(name);
  for (std::string word; std::getline(words, word, '-');)
    if (word.empty() || ("-" + candidate + "-").find("-" + word + "-") == std::string::npos)
      return false;
  return true;
}

}  // namespace

std::string nearest(std::string const& name, std::vector<std::string> const& candidates) {
  auto const wanted = with_dashes(name);
  std::string best;
  std::size_t best_distance = 0;
  for (auto const& candidate : candidates) {
    auto const longer = std::max(wanted.size(), candidate.size());
    auto const allowed = std::max<std::size_t>(2, longer * 2 / 5);
    auto distance = edit_distance(wanted, with_dashes(candidate));
    if (has_all_words(wanted, with_dashes(candidate))) distance = std::min(distance, allowed);
    if (distance > allowed || distance >= longer) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace vlrerank
