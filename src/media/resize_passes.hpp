// media/resize_passes.hpp -- the two passes of the bicubic resize, in a portable form that defines
// the result and an AVX2 form that must equal it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vlrerank {

/// Weights are integers scaled by 2^22.
inline constexpr int weight_bits = 22;

/// For each output position: the first input position and as many weights as `stride`, of which
/// the last may be 0 where the kernel is cut at an edge.
struct Taps {
  std::int32_t stride = 0;            ///< weights a position
  std::vector<std::int32_t> first;    ///< [out]
  std::vector<std::int32_t> count;    ///< [out], 1..stride
  std::vector<std::int32_t> weights;  ///< [out, stride]
};

/// Bicubic (a = -0.5), widened by the scale when shrinking, cut and renormalised at the edges.
Taps bicubic_taps(std::int32_t size_in, std::int32_t size_out);

/// Resizes along x: `rows` rows of `width_in` RGB pixels to rows of taps.first.size() pixels.
void resize_columns_portable(std::uint8_t const* in, std::int32_t width_in, std::int32_t rows,
                             Taps const& taps, std::uint8_t* out);
void resize_columns_avx2(std::uint8_t const* in, std::int32_t width_in, std::int32_t rows,
                         Taps const& taps, std::uint8_t* out);

/// Resizes along y: rows of `row_bytes` bytes to taps.first.size() rows.
void resize_rows_portable(std::uint8_t const* in, std::size_t row_bytes, Taps const& taps,
                          std::uint8_t* out);
void resize_rows_avx2(std::uint8_t const* in, std::size_t row_bytes, Taps const& taps,
                      std::uint8_t* out);

/// Whether this processor has AVX2 and the build has the code for it.
bool have_avx2();

}  // namespace vlrerank
