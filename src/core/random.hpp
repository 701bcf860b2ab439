// core/random.hpp -- random numbers that are a function of their keys, never of history.
#pragma once

#include <cstdint>
#include <string_view>

namespace vlrerank {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014, variant 13).
constexpr std::uint64_t finalise(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Mixes two 64-bit values into one.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return finalise(a + golden_gamma * (b + 1));
}

/// A name as a key (FNV-1a, finalised); the same on every machine.
constexpr std::uint64_t hash_text(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char const c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return finalise(hash);
}

/// A stream of random 64-bit numbers that is a function of its keys (SplitMix64 over their hash).
class KeyedRandom {
 public:
  explicit KeyedRandom(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0)
      : state_(mix(mix(finalise(seed), a), b)) {}

  std::uint64_t next() {
    state_ += golden_gamma;
    return finalise(state_);
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, bound), without modulo bias (Lemire, arXiv:1805.10941).
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = Wide{next()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      std::uint64_t const threshold = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace vlrerank
