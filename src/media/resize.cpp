// media/resize.cpp -- Pillow's bicubic resize bit for bit: 22-bit weights, columns then rows, each
// pass rounded to 8 bits, a pass that keeps its size left out. This file defines the result.
// It must be compiled without contraction of a * b + c, which would change the weights.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "media/image.hpp"
#include "media/resize_passes.hpp"

namespace vlrerank {
namespace {

constexpr double support = 2.0;
/// Up to here the sums of the split weights of the AVX2 form stay within 32 bits.
constexpr std::int32_t max_avx2_taps = 4000;

double cubic(double x) {
  x = std::abs(x);
  if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * -0.5;
  return 0.0;
}

std::int32_t to_fixed(double weight) {
  auto const scaled = weight * (1 << weight_bits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

}  // namespace

Taps bicubic_taps(std::int32_t size_in, std::int32_t size_out) {
  auto const scale = static_cast<double>(size_in) / size_out;
  auto const stretch = std::max(scale, 1.0);
  auto const reach = support * stretch;
  auto const shrink = 1.0 / stretch;
  Taps taps;
  taps.stride = static_cast<std::int32_t>(std::ceil(reach)) * 2 + 1;
  auto const outs = static_cast<std::size_t>(size_out);
  taps.weights.assign(outs * static_cast<std::size_t>(taps.stride), 0);
  std::vector<double> exact(static_cast<std::size_t>(taps.stride));
  for (std::int32_t i = 0; i < size_out; ++i) {
    auto const center = (i + 0.5) * scale;
    auto const first = std::max(static_cast<std::int32_t>(center - reach + 0.5), 0);
    auto const last = std::min(static_cast<std::int32_t>(center + reach + 0.5), size_in);
    auto const count = static_cast<std::size_t>(last - first);
    double sum = 0.0;
    for (std::size_t j = 0; j < count; ++j) {
      exact[j] = cubic((static_cast<double>(j) + first - center + 0.5) * shrink);
      sum += exact[j];
    }
    auto* const weights = &taps.weights[static_cast<std::size_t>(i) * exact.size()];
    for (std::size_t j = 0; j < count; ++j)
      weights[j] = to_fixed(sum == 0.0 ? exact[j] : exact[j] / sum);
    taps.first.push_back(first);
    taps.count.push_back(last - first);
  }
  return taps;
}

void resize_columns_portable(std::uint8_t const* in, std::int32_t width_in, std::int32_t rows,
                             Taps const& taps, std::uint8_t* out) {
  auto const stride = static_cast<std::size_t>(width_in) * 3;
  for (std::int32_t y = 0; y < rows; ++y, in += stride)
    for (std::size_t x = 0; x < taps.first.size(); ++x) {
      auto const* const weights = &taps.weights[x * static_cast<std::size_t>(taps.stride)];
      auto const* pixel = in + std::ptrdiff_t{3} * taps.first[x];
      std::int32_t red = 1 << (weight_bits - 1);
      std::int32_t green = red;
      std::int32_t blue = red;
      for (std::int32_t j = 0; j < taps.count[x]; ++j, pixel += 3) {
        red += weights[j] * pixel[0];
        green += weights[j] * pixel[1];
        blue += weights[j] * pixel[2];
      }
      *out++ = to_byte(red);
      *out++ = to_byte(green);
      *out++ = to_byte(blue);
    }
}

void resize_rows_portable(std::uint8_t const* in, std::size_t row_bytes, Taps const& taps,
                          std::uint8_t* out) {
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < taps.first.size(); ++y, out += row_bytes) {
    std::fill(sums.begin(), sums.end(), 1 << (weight_bits - 1));
    for (std::int32_t j = 0; j < taps.count[y]; ++j) {
      auto const weight = taps.weights[y * static_cast<std::size_t>(taps.stride) + std::size_t(j)];
      auto const* const row = in + static_cast<std::size_t>(taps.first[y] + j) * row_bytes;
      for (std::size_t x = 0; x < row_bytes; ++x) sums[x] += weight * row[x];
    }
    std::transform(sums.begin(), sums.end(), out, to_byte);
  }
}

Image resize_bicubic(Image const& image, ImageSize size) {
  VLR_REQUIRE(size.height > 0 && size.width > 0 && image.size.height > 0 && image.size.width > 0 &&
                  image.rgb.size() == std::size_t{3} * std::size_t(image.size.height) *
                                          std::size_t(image.size.width),
              text("resize from ", image.size.width, "x", image.size.height, " with ",
                   image.rgb.size(), " bytes to ", size.width, "x", size.height),
              "this is a bug in the caller: pass positive sides and three bytes a pixel");
  auto const fits_avx2 = [](Taps const& taps) {
    return have_avx2() && taps.stride <= max_avx2_taps;
  };
  Image wide;
  auto const* source = &image;
  if (size.width != image.size.width) {
    auto const taps = bicubic_taps(image.size.width, size.width);
    wide.size = {image.size.height, size.width};
    wide.rgb.resize(std::size_t{3} * std::size_t(wide.size.height) * std::size_t(size.width));
    auto const pass = fits_avx2(taps) ? resize_columns_avx2 : resize_columns_portable;
    pass(image.rgb.data(), image.size.width, image.size.height, taps, wide.rgb.data());
    source = &wide;
  }
  if (size.height == source->size.height) return source == &wide ? std::move(wide) : image;
  auto const taps = bicubic_taps(source->size.height, size.height);
  auto const row_bytes = std::size_t{3} * std::size_t(size.width);
  Image resized{size, std::vector<std::uint8_t>(row_bytes * std::size_t(size.height))};
  auto const pass = fits_avx2(taps) ? resize_rows_avx2 : resize_rows_portable;
  pass(source->rgb.data(), row_bytes, taps, resized.rgb.data());
  return resized;
}

}  // namespace vlrerank
