// media/resize_avx2.cpp -- the resize passes with AVX2, equal to the portable ones in every bit.
// A 22-bit weight is split into 11 low bits and the rest, so that two 16-bit multiply-add
// instructions give exact 32-bit sums. Bound by these: two multiply-adds for 16 products.
#include <algorithm>
#include <array>
#include <cstring>

#include "media/resize_passes.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#define VLR_AVX2 __attribute__((target("avx2")))

namespace vlrerank {
namespace {

constexpr int low_bits = 11;
constexpr int low_mask = (1 << low_bits) - 1;

struct SplitWeight {
  std::int16_t low;
  std::int16_t high;
};

SplitWeight split(std::int32_t weight) {
  return {static_cast<std::int16_t>(weight & low_mask),
          static_cast<std::int16_t>(weight >> low_bits)};
}

/// For four taps of one output pixel: the weights as the shuffled pixels lie, w0 w1 three times
/// and 0 0 in the lower half, w2 w3 in the upper.
struct alignas(32) FourTaps {
  std::array<std::int16_t, 16> low{};
  std::array<std::int16_t, 16> high{};
};

std::vector<FourTaps> spread_weights(Taps const& taps, std::int32_t groups) {
  std::vector<FourTaps> spread(taps.first.size() * static_cast<std::size_t>(groups));
  for (std::size_t x = 0; x < taps.first.size(); ++x)
    for (std::int32_t j = 0; j < taps.count[x]; ++j) {
      auto const [low, high] =
          split(taps.weights[x * static_cast<std::size_t>(taps.stride) + std::size_t(j)]);
      auto& group = spread[x * static_cast<std::size_t>(groups) + std::size_t(j / 4)];
      auto const place = static_cast<std::size_t>(j % 4 / 2 * 8 + j % 2);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        group.low[place + 2 * channel] = low;
        group.high[place + 2 * channel] = high;
      }
    }
  return spread;
}

/// Low and high sums to values of 8 bits in 32, not yet clipped.
VLR_AVX2 inline __m128i join(__m256i low, __m256i high) {
  auto const sum = _mm256_add_epi32(_mm256_slli_epi32(high, low_bits), low);
  auto const both = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return _mm_srai_epi32(_mm_add_epi32(both, _mm_set1_epi32(1 << (weight_bits - 1))), weight_bits);
}

/// One output pixel of four rows.
VLR_AVX2 inline __m128i four_rows(std::array<std::uint8_t const*, 4> const& rows, std::size_t at,
                                  FourTaps const* weights, std::int32_t groups) {
  auto const order = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                      6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  __m256i low[4];
  __m256i high[4];
  for (int r = 0; r < 4; ++r) low[r] = high[r] = _mm256_setzero_si256();
  for (std::int32_t g = 0; g < groups; ++g, at += 12) {
    auto const weight_low =
        _mm256_load_si256(reinterpret_cast<__m256i const*>(weights[g].low.data()));
    auto const weight_high =
        _mm256_load_si256(reinterpret_cast<__m256i const*>(weights[g].high.data()));
    for (std::size_t r = 0; r < 4; ++r) {
      auto const bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(rows[r] + at));
      auto const pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
      low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(pairs, weight_low));
      high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(pairs, weight_high));
    }
  }
  return _mm_packus_epi16(_mm_packs_epi32(join(low[0], high[0]), join(low[1], high[1])),
                          _mm_packs_epi32(join(low[2], high[2]), join(low[3], high[3])));
}

/// Adds two rows of 16 bytes, weighted, to the sums of 16 outputs.
struct Sums {
  __m256i low[2];
  __m256i high[2];
};

VLR_AVX2 inline void add_rows(Sums& sums, std::uint8_t const* first, std::uint8_t const* second,
                              __m256i weight_low, __m256i weight_high) {
  auto const a = _mm_loadu_si128(reinterpret_cast<__m128i const*>(first));
  auto const b = _mm_loadu_si128(reinterpret_cast<__m128i const*>(second));
  __m256i const pairs[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                            _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
  for (int half = 0; half < 2; ++half) {
    sums.low[half] = _mm256_add_epi32(sums.low[half], _mm256_madd_epi16(pairs[half], weight_low));
    sums.high[half] =
        _mm256_add_epi32(sums.high[half], _mm256_madd_epi16(pairs[half], weight_high));
  }
}

VLR_AVX2 inline __m128i round_sums(Sums const& sums) {
  __m256i words[2];
  for (int half = 0; half < 2; ++half) {
    auto const sum = _mm256_add_epi32(_mm256_slli_epi32(sums.high[half], low_bits), sums.low[half]);
    words[half] = _mm256_srai_epi32(
        _mm256_add_epi32(sum, _mm256_set1_epi32(1 << (weight_bits - 1))), weight_bits);
  }
  auto const packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(words[0], words[1]), 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
}

/// Two neighbouring weights in every 32-bit lane.
VLR_AVX2 inline __m256i weight_pair(std::int16_t first, std::int16_t second) {
  return _mm256_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint16_t>(first)) |
                           static_cast<std::int32_t>(second) << 16);
}

}  // namespace

bool have_avx2() {
  static bool const have = __builtin_cpu_supports("avx2");
  return have;
}

VLR_AVX2 void resize_columns_avx2(std::uint8_t const* in, std::int32_t width_in, std::int32_t rows,
                                  Taps const& taps, std::uint8_t* out) {
  constexpr std::size_t slack = 32;  // the last taps are loaded four pixels, 16 bytes at a time
  auto const groups = (taps.stride + 3) / 4;
  auto const weights = spread_weights(taps, groups);
  auto const stride_in = static_cast<std::size_t>(width_in) * 3;
  auto const stride_out = taps.first.size() * 3;
  auto const padded = stride_in + static_cast<std::size_t>(groups) * 12 + slack;
  std::vector<std::uint8_t> copy(4 * padded);
  for (std::int32_t y = 0; y < rows; y += 4) {
    std::array<std::uint8_t const*, 4> from{};
    std::array<std::uint8_t*, 4> to{};
    for (std::size_t r = 0; r < 4; ++r) {
      auto const row =
          static_cast<std::size_t>(std::min(y + static_cast<std::int32_t>(r), rows - 1));
      std::memcpy(&copy[r * padded], in + row * stride_in, stride_in);
      from[r] = &copy[r * padded];
      to[r] = out + row * stride_out;
    }
    for (std::size_t x = 0; x < taps.first.size(); ++x) {
      auto const at = static_cast<std::size_t>(taps.first[x]) * 3;
      auto const* const group = &weights[x * static_cast<std::size_t>(groups)];
      alignas(16) std::array<std::uint8_t, 16> pixels;
      _mm_store_si128(reinterpret_cast<__m128i*>(pixels.data()),
                      four_rows(from, at, group, (taps.count[x] + 3) / 4));
      for (std::size_t r = 0; r < 4; ++r) std::memcpy(to[r] + 3 * x, &pixels[4 * r], 3);
    }
  }
}

VLR_AVX2 void resize_rows_avx2(std::uint8_t const* in, std::size_t row_bytes, Taps const& taps,
                               std::uint8_t* out) {
  constexpr std::size_t step = 16;
  if (row_bytes < step) return resize_rows_portable(in, row_bytes, taps, out);
  for (std::size_t y = 0; y < taps.first.size(); ++y, out += row_bytes) {
    auto const* const weight = &taps.weights[y * static_cast<std::size_t>(taps.stride)];
    auto const count = static_cast<std::size_t>(taps.count[y]);
    auto const* const top = in + static_cast<std::size_t>(taps.first[y]) * row_bytes;
    for (std::size_t x = 0; x < row_bytes; x += step) {
      auto const at = std::min(x, row_bytes - step);  // the last step overlaps the one before
      Sums sums;
      for (int half = 0; half < 2; ++half)
        sums.low[half] = sums.high[half] = _mm256_setzero_si256();
      for (std::size_t j = 0; j < count; j += 2) {
        auto const* const first = top + j * row_bytes + at;
        bool const paired = j + 1 < count;
        auto const a = split(weight[j]);
        auto const b = split(paired ? weight[j + 1] : 0);
        add_rows(sums, first, paired ? first + row_bytes : first, weight_pair(a.low, b.low),
                 weight_pair(a.high, b.high));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at), round_sums(sums));
    }
  }
}

}  // namespace vlrerank

#else

namespace vlrerank {

bool have_avx2() {
  return false;
}

void resize_columns_avx2(std::uint8_t const* in, std::int32_t width_in, std::int32_t rows,
                         Taps const& taps, std::uint8_t* out) {
  resize_columns_portable(in, width_in, rows, taps, out);
}

void resize_rows_avx2(std::uint8_t const* in, std::size_t row_bytes, Taps const& taps,
                      std::uint8_t* out) {
  resize_rows_portable(in, row_bytes, taps, out);
}

}  // namespace vlrerank

#endif
