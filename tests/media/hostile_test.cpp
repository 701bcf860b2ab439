// tests/media/hostile_test.cpp -- damaged pictures of every format: an error or a picture, never
// more. Run under AddressSanitizer by the asan preset.
#include <gtest/gtest.h>

#include <random>

#include "core/error.hpp"
#include "media/encoders.hpp"
#include "media/image.hpp"

namespace vlrerank {
namespace {

struct Sample {
  std::string name;
  std::string bytes;
};

std::vector<Sample> samples() {
  std::vector<std::uint8_t> rgb, rgba, cmyk, grey, deep;
  for (std::uint8_t i = 0; i < 240; ++i) {
    rgb.insert(rgb.end(), {i, static_cast<std::uint8_t>(255 - i), 7});
    rgba.insert(rgba.end(), {i, 100, 7, static_cast<std::uint8_t>(i * 3)});
    deep.insert(deep.end(), {i, 100, 7, i, 9, 9, i, i});
    grey.push_back(i % 4);
  }
  ImageSize const size{12, 20};
  std::vector<std::uint8_t> const palette = {1, 2, 3, 40, 50, 60, 70, 80, 90, 200, 210, 220};
  std::vector<std::uint8_t> const bgrx = {1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 9, 9, 9, 0};
  return {
      {"png", encode_png({.size = size, .rows = rgb, .exif = exif_block(6), .text = "words"})},
      {"png_interlaced",
       encode_png({.size = size, .bits = 16, .colour_type = 6, .rows = deep, .interlaced = true})},
      {"png_palette", encode_png({.size = size,
                                  .colour_type = 3,
                                  .rows = grey,
                                  .palette = palette,
                                  .palette_alpha = {0, 9}})},
      {"jpeg", encode_jpeg(size, JpegSpace::rgb, rgb, false, exif_block(8, true))},
      {"jpeg_progressive", encode_jpeg(size, JpegSpace::rgb, rgb, true)},
      {"jpeg_cmyk", encode_jpeg(size, JpegSpace::ycck, rgba)},
      {"webp", encode_webp(size, rgba)},
      {"gif", encode_gif({14, 22}, palette, {{1, 2, size, grey, 1, true}, {0, 0, size, grey}})},
      {"bmp_palette", encode_bmp(size, 8, grey, bgrx)},
      {"bmp_masks", encode_bmp(size, 32, rgba, {}, {0xff, 0xff00, 0xff0000, 0xff000000})},
      {"tiff", encode_tiff({.size = size, .compression = 5, .orientation = 7, .rows = rgb})},
      {"tiff_deep",
       encode_tiff({.size = {12, 10}, .bits = 16, .samples = 1, .photometric = 1, .rows = deep})},
  };
}

/// Damage: some bytes changed, a piece cut off, taken out or doubled.
std::string damaged(std::string bytes, std::mt19937& random) {
  auto const place = [&] { return random() % bytes.size(); };
  switch (random() % 5) {
    case 0:
      bytes.resize(place());
      break;
    case 1:
      bytes.erase(place(), random() % 16);
      break;
    case 2:
      bytes.insert(place(), bytes.substr(place(), random() % 16));
      break;
    default:
      for (auto left = 1 + random() % 6; left > 0; --left) {
        // Early bytes, where the headers are, are hit more often.
        auto const at =
            random() % 2 == 0 ? place() : place() % std::min<std::size_t>(64, bytes.size());
        bytes[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
      }
  }
  return bytes;
}

class Hostile : public testing::TestWithParam<Sample> {};

TEST_P(Hostile, DamageGivesAnErrorOrAPicture) {
  ImageOptions options;
  options.max_pixels = 1 << 20;
  std::mt19937 random(20261130);
  int refused = 0;

  for (int round = 0; round < 500; ++round) {
    auto const bytes = damaged(GetParam().bytes, random);
    try {
      auto const image = decode_image(bytes, options);
      auto const pixels = std::size_t(image.size.height) * std::size_t(image.size.width);
      ASSERT_EQ(image.rgb.size(), 3 * pixels);
      ASSERT_EQ(read_image_header(bytes, options).size, image.size);
    } catch (Error const& error) {
      ++refused;
      ASSERT_EQ(error.code(), Exit::input) << error.what();
    }
  }

  EXPECT_GT(refused, 50);
}

TEST_P(Hostile, EveryCutIsAnErrorOrAPicture) {
  for (std::size_t length = 0; length < GetParam().bytes.size(); ++length) {
    auto const cut = GetParam().bytes.substr(0, length);
    try {
      decode_image(cut, {});
    } catch (Error const& error) {
      ASSERT_EQ(error.code(), Exit::input) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Hostile, testing::ValuesIn(samples()),
                         [](auto const& tested) { return tested.param.name; });

}  // namespace
}  // namespace vlrerank
