// kernels/exp.hpp -- an exponential that the compiler can vectorise.
#pragma once

#include <cstdint>
#include <cstring>

namespace vlrerank::ops {

/// e^x within 2 units of the last place; 0 below -87.3, e^88 above 88.
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial, 2^n through the exponent.
inline float fast_exp(float x) {
  constexpr float log2_e = 1.44269504088896341f;
  constexpr float ln2_high = 0.693359375f;  // few bits: n * ln2_high is exact
  constexpr float ln2_low = -2.12194440e-4f;
  float const clamped = x < -87.3f ? -87.3f : (x > 88.0f ? 88.0f : x);
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float const shifted = clamped * log2_e + to_integer;
  float const n = shifted - to_integer;
  float const r = (clamped - n * ln2_high) - n * ln2_low;
  float p = 1.9841270e-4f;  // 1/7!
  p = p * r + 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  std::int32_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) << 23) + 0x3f800000;
  float power = 0;
  std::memcpy(&power, &bits, sizeof power);
  return x < -87.3f ? 0.0f : p * power;
}

}  // namespace vlrerank::ops
