// media/frame_resize.cpp -- torchvision's antialiased bicubic resize of 8-bit tensors, which works
// in float32: columns, then rows, one rounding at the end. Bit-equal to LibTorch 2.11's kernel on
// x86-64: its compiler takes the taps after the first in blocks of four, whose products are
// rounded before they are added in order, and fuses multiplication and addition for the rest.
// It must be compiled without contraction of a * b + c: each operation here is meant as written.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "media/resize_passes.hpp"
#include "media/video.hpp"

namespace vlrerank {
namespace {

/// As Taps, with weights in float32.
struct FloatTaps {
  std::size_t stride = 0;
  std::vector<std::size_t> first;
  std::vector<std::size_t> count;
  std::vector<float> weights;
};

/// Bicubic kernel with a = -0.5 by Horner's rule.
float cubic(float x) {
  x = std::abs(x);
  if (x < 1.0f) return std::fma(std::fma(1.5f, x, -2.5f) * x, x, 1.0f);
  if (x < 2.0f) return std::fma(std::fma(std::fma(-0.5f, x, 2.5f), x, -4.0f), x, 2.0f);
  return 0.0f;
}

FloatTaps float_taps(std::int32_t size_in, std::int32_t size_out) {
  auto const scale = static_cast<float>(size_in) / static_cast<float>(size_out);
  auto const reach = scale >= 1.0f ? 2.0f * scale : 2.0f;
  auto const shrink = scale >= 1.0f ? static_cast<float>(1.0 / double{scale}) : 1.0f;
  FloatTaps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  taps.weights.assign(static_cast<std::size_t>(size_out) * taps.stride, 0);
  for (std::int32_t i = 0; i < size_out; ++i) {
    auto const center = static_cast<float>(double{scale} * (i + 0.5));
    auto const first =
        std::max(static_cast<std::int64_t>(double{center - reach} + 0.5), std::int64_t{0});
    auto const last =
        std::min(static_cast<std::int64_t>(double{center + reach} + 0.5), std::int64_t{size_in});
    auto* const weights = &taps.weights[static_cast<std::size_t>(i) * taps.stride];
    float sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
      auto const distance = double{static_cast<float>(j) - center} + 0.5;
      auto const weight = cubic(static_cast<float>(distance * double{shrink}));
      weights[j - first] = weight;
      sum += weight;
    }
    for (std::int64_t j = first; j < last && sum != 0.0f; ++j) weights[j - first] /= sum;
    taps.first.push_back(static_cast<std::size_t>(first));
    taps.count.push_back(static_cast<std::size_t>(last - first));
  }
  return taps;
}

/// A float picture of 3 channels.
struct Floats {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> values;
};

constexpr std::size_t block = 4;

/// How many taps from the second on are added with separately rounded products.
std::size_t rounded_taps(std::size_t count) {
  return (count - 1) / block * block;
}

[[gnu::always_inline]] inline void columns_pass(Floats const& in, FloatTaps const& taps,
                                                Floats& out) {
  auto const* row = in.values.data();
  auto* to = out.values.data();
  for (std::size_t y = 0; y < in.rows; ++y, row += 3 * in.columns)
    for (std::size_t x = 0; x < out.columns; ++x, to += 3) {
      auto const* weight = &taps.weights[x * taps.stride];
      auto const* const end = weight + taps.count[x];
      auto const* const fused = weight + 1 + rounded_taps(taps.count[x]);
      auto const* pixel = row + 3 * taps.first[x];
      float red = pixel[0] * *weight;
      float green = pixel[1] * *weight;
      float blue = pixel[2] * *weight;
      for (++weight, pixel += 3; weight < fused; ++weight, pixel += 3) {
        red += pixel[0] * *weight;
        green += pixel[1] * *weight;
        blue += pixel[2] * *weight;
      }
      for (; weight < end; ++weight, pixel += 3) {
        red = std::fma(pixel[0], *weight, red);
        green = std::fma(pixel[1], *weight, green);
        blue = std::fma(pixel[2], *weight, blue);
      }
      to[0] = red;
      to[1] = green;
      to[2] = blue;
    }
}

[[gnu::always_inline]] inline void rows_pass(Floats const& in, FloatTaps const& taps, Floats& out) {
  auto const width = 3 * in.columns;
  for (std::size_t y = 0; y < out.rows; ++y) {
    auto const* const weights = &taps.weights[y * taps.stride];
    auto const fused = 1 + rounded_taps(taps.count[y]);
    auto const* row = &in.values[taps.first[y] * width];
    auto* const to = &out.values[y * width];
    for (std::size_t x = 0; x < width; ++x) to[x] = row[x] * weights[0];
    for (std::size_t j = 1; j < taps.count[y]; ++j) {
      row += width;
      auto const weight = weights[j];
      if (j < fused)
        for (std::size_t x = 0; x < width; ++x) to[x] += row[x] * weight;
      else
        for (std::size_t x = 0; x < width; ++x) to[x] = std::fma(row[x], weight, to[x]);
    }
  }
}

enum class Along { columns, rows };

[[gnu::always_inline]] inline void run_pass(Along along, Floats const& in, FloatTaps const& taps,
                                            Floats& out) {
  if (along == Along::columns) return columns_pass(in, taps, out);
  rows_pass(in, taps, out);
}

void pass_portable(Along along, Floats const& in, FloatTaps const& taps, Floats& out) {
  run_pass(along, in, taps, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void pass_fma(Along along, Floats const& in,
                                                  FloatTaps const& taps, Floats& out) {
  run_pass(along, in, taps, out);
}

void pass(Along along, Floats const& in, FloatTaps const& taps, Floats& out) {
  static bool const fused = have_avx2() && __builtin_cpu_supports("fma");
  return fused ? pass_fma(along, in, taps, out) : pass_portable(along, in, taps, out);
}
#else
void pass(Along along, Floats const& in, FloatTaps const& taps, Floats& out) {
  pass_portable(along, in, taps, out);
}
#endif

}  // namespace

Image resize_frame(Image const& frame, ImageSize size) {
  if (frame.size == size) return frame;
  auto const rows = static_cast<std::size_t>(size.height);
  auto const columns = static_cast<std::size_t>(size.width);
  Floats floats{static_cast<std::size_t>(frame.size.height),
                static_cast<std::size_t>(frame.size.width),
                std::vector<float>(frame.rgb.begin(), frame.rgb.end())};
  VLR_REQUIRE(rows > 0 && columns > 0 && floats.values.size() == 3 * floats.rows * floats.columns,
              text("a frame of ", frame.size.width, "x", frame.size.height, " with ",
                   frame.rgb.size(), " bytes"),
              "this is a bug in the caller: pass positive sides and three bytes a pixel");
  if (columns != floats.columns) {
    Floats wide{floats.rows, columns, std::vector<float>(3 * floats.rows * columns)};
    pass(Along::columns, floats, float_taps(frame.size.width, size.width), wide);
    floats = std::move(wide);
  }
  if (rows != floats.rows) {
    Floats tall{rows, columns, std::vector<float>(3 * rows * columns)};
    pass(Along::rows, floats, float_taps(frame.size.height, size.height), tall);
    floats = std::move(tall);
  }
  Image resized{size, std::vector<std::uint8_t>(floats.values.size())};
  std::transform(floats.values.begin(), floats.values.end(), resized.rgb.begin(), [](float value) {
    return static_cast<std::uint8_t>(std::nearbyint(std::clamp(value, 0.0f, 255.0f)));
  });
  return resized;
}

}  // namespace vlrerank
