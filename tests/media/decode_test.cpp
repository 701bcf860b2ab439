// tests/media/decode_test.cpp -- forms of each format that the reported cases do not cover, and
// orientation wherever a format can state it.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "media/encoders.hpp"
#include "media/image.hpp"

namespace vlrerank {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string refusal(std::string const& bytes) {
  try {
    decode_image(bytes, {});
    return "";
  } catch (Error const& error) {
    return error.summary();
  }
}

/// A picture of 2 rows x 3 columns whose red tells where each pixel was stored.
Bytes const numbered = {0, 9, 9, 10, 9, 9, 20, 9, 9, 30, 9, 9, 40, 9, 9, 50, 9, 9};

Bytes reds(Image const& image) {
  Bytes out;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) out.push_back(image.rgb[i]);
  return out;
}

/// Upright reds for the orientations 1..8 (EXIF 2.32, table of the orientation tag).
std::vector<std::pair<ImageSize, Bytes>> const uprights = {
    {{2, 3}, {0, 10, 20, 30, 40, 50}}, {{2, 3}, {20, 10, 0, 50, 40, 30}},
    {{2, 3}, {50, 40, 30, 20, 10, 0}}, {{2, 3}, {30, 40, 50, 0, 10, 20}},
    {{3, 2}, {0, 30, 10, 40, 20, 50}}, {{3, 2}, {30, 0, 40, 10, 50, 20}},
    {{3, 2}, {50, 20, 40, 10, 30, 0}}, {{3, 2}, {20, 50, 10, 40, 0, 30}}};

void expect_turned(std::string const& bytes, int orientation) {
  auto const& [size, expected] = uprights[static_cast<std::size_t>(orientation - 1)];
  ImageOptions ignoring;
  ignoring.exif = Exif::ignore;
  auto const image = decode_image(bytes, {});

  EXPECT_EQ(image.size, size) << orientation;
  EXPECT_EQ(reds(image), expected) << orientation;
  EXPECT_EQ(read_image_header(bytes, {}).size, size);
  EXPECT_EQ(decode_image(bytes, ignoring).size, (ImageSize{2, 3}));
  EXPECT_EQ(reds(decode_image(bytes, ignoring)), uprights[0].second);
}

TEST(Orientation, OfPngIsAppliedInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (bool const big_endian : {false, true})
      expect_turned(
          encode_png(
              {.size = {2, 3}, .rows = numbered, .exif = exif_block(orientation, big_endian)}),
          orientation);
}

TEST(Orientation, OfTiffIsApplied) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    expect_turned(encode_tiff({.size = {2, 3}, .orientation = orientation, .rows = numbered}),
                  orientation);
}

TEST(Orientation, OfJpegIsApplied) {
  Bytes picture;  // left half dark, right half light: 8 rows x 16 columns
  for (int i = 0; i < 8 * 16; ++i) picture.push_back(i % 16 < 8 ? 0 : 255);
  auto const quarter =
      decode_image(encode_jpeg({8, 16}, JpegSpace::grey, picture, false, exif_block(6)), {});

  ASSERT_EQ(quarter.size, (ImageSize{16, 8}));
  EXPECT_LT(quarter.rgb.front(), 5);
  EXPECT_GT(quarter.rgb.back(), 250);
}

TEST(Orientation, OfWebpIsReadFromItsExtendedForm) {
  auto const plain = encode_webp({2, 3}, {0,  9, 9, 255, 10, 9, 9, 255, 20, 9, 9, 255,
                                          30, 9, 9, 255, 40, 9, 9, 255, 50, 9, 9, 255});
  auto const chunk = [](std::string const& name, std::string body) {
    auto const length = static_cast<char>(body.size());
    if (body.size() % 2 == 1) body += '\0';
    return name + length + std::string(3, '\0') + body;
  };
  for (auto const& mark : {std::string(), std::string("Exif\0\0", 6)}) {
    std::string const extended = chunk("VP8X", std::string("\x08\0\0\0\2\0\0\1\0\0", 10)) +
                                 plain.substr(12) + chunk("EXIF", mark + exif_block(5));
    expect_turned("RIFF" + std::string(1, static_cast<char>(extended.size() + 4)) +
                      std::string(3, '\0') + "WEBP" + extended,
                  5);
  }
}

TEST(Orientation, ValuesOutsideTheTableAreIgnored) {
  for (int const orientation : {0, 9, 65535})
    EXPECT_EQ(
        decode_image(
            encode_png({.size = {2, 3}, .rows = numbered, .exif = exif_block(orientation)}), {})
            .size,
        (ImageSize{2, 3}));
}

TEST(Png, InterlacedEqualsPlain) {
  Bytes rows;
  for (int i = 0; i < 13 * 11 * 3; ++i) rows.push_back(static_cast<std::uint8_t>(i * 7));
  PngPicture picture{.size = {13, 11}, .rows = rows};
  auto const plain = decode_image(encode_png(picture), {});
  picture.interlaced = true;

  EXPECT_EQ(plain.rgb, rows);
  EXPECT_EQ(decode_image(encode_png(picture), {}).rgb, rows);
}

TEST(Png, EveryBitDepthOfGreyIsSpreadToEightBits) {
  EXPECT_EQ(reds(decode_image(
                encode_png({.size = {1, 2}, .bits = 1, .colour_type = 0, .rows = {0x40}}), {})),
            (Bytes{0, 255}));
  EXPECT_EQ(reds(decode_image(
                encode_png({.size = {1, 4}, .bits = 2, .colour_type = 0, .rows = {0x1b}}), {})),
            (Bytes{0, 85, 170, 255}));
  EXPECT_EQ(reds(decode_image(
                encode_png({.size = {1, 2}, .bits = 4, .colour_type = 0, .rows = {0x1f}}), {})),
            (Bytes{17, 255}));
}

TEST(Jpeg, CmykAndYcckFollowAdobesInversion) {
  Bytes samples;
  for (int i = 0; i < 256; ++i) samples.insert(samples.end(), {255, 128, 55, 200});
  for (auto const space : {JpegSpace::cmyk, JpegSpace::ycck})
    for (bool const progressive : {false, true}) {
      auto const image = decode_image(encode_jpeg({16, 16}, space, samples, progressive), {});

      EXPECT_NEAR(image.rgb[0], 200, 3);
      EXPECT_NEAR(image.rgb[1], 100, 3);
      EXPECT_NEAR(image.rgb[2], 43, 3);
    }
}

TEST(Jpeg, ATruncatedFileIsRefused) {
  Bytes samples;
  for (int i = 0; i < 64 * 64 * 3; ++i) samples.push_back(static_cast<std::uint8_t>(i * 37));
  for (bool const progressive : {false, true}) {
    auto const whole = encode_jpeg({64, 64}, JpegSpace::rgb, samples, progressive);
    EXPECT_EQ(refusal(whole), "");
    for (auto const part : {2, 3, 4})
      EXPECT_NE(refusal(whole.substr(0, whole.size() * (part - 1) / part)).find("JPEG"),
                std::string::npos);
  }
}

TEST(Bmp, EveryDepthAndDirection) {
  Bytes const palette = {3, 2, 1, 0, 6, 5, 4, 0, 9, 8, 7, 0, 0, 0, 0, 0};
  auto const row = [](Bytes bytes) {
    bytes.resize(4);
    return bytes;
  };

  EXPECT_EQ(decode_image(encode_bmp({1, 2}, 4, row({0x21}), palette), {}).rgb,
            (Bytes{7, 8, 9, 4, 5, 6}));
  EXPECT_EQ(decode_image(encode_bmp({1, 2}, 8, row({2, 200}), palette), {}).rgb,
            (Bytes{7, 8, 9, 0, 0, 0}));
  EXPECT_EQ(decode_image(encode_bmp({1, 1}, 16, row({0xff, 0x03})), {}).rgb, (Bytes{0, 255, 255}));
  EXPECT_EQ(decode_image(encode_bmp({1, 1}, 32, {1, 2, 3, 99}), {}).rgb, (Bytes{3, 2, 1}));
  EXPECT_EQ(decode_image(encode_bmp({2, 1}, 24, {3, 2, 1, 0, 6, 5, 4, 0}), {}).rgb,
            (Bytes{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decode_image(encode_bmp({2, 1}, 24, {3, 2, 1, 0, 6, 5, 4, 0}, {}, {}, true), {}).rgb,
            (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(Bmp, MasksAndAlpha) {
  auto const rgb565 = encode_bmp({1, 1}, 16, {0xe0, 0x07, 0, 0}, {}, {0xf800, 0x07e0, 0x001f, 0});
  auto const rgba = encode_bmp({1, 1}, 32, {10, 20, 30, 51}, {},
                               {0x000000ff, 0x0000ff00, 0x00ff0000, 0xff000000});

  EXPECT_EQ(decode_image(rgb565, {}).rgb, (Bytes{0, 255, 0}));
  EXPECT_EQ(decode_image(rgba, {}).rgb, (Bytes{206, 208, 210}));
}

TEST(Bmp, RunLengthsAreRefusedByName) {
  auto bytes = encode_bmp({1, 1}, 8, {0, 1, 0, 1}, Bytes(1024));
  bytes[30] = 1;

  EXPECT_NE(refusal(bytes).find("run-length"), std::string::npos) << refusal(bytes);
}

TEST(Tiff, CompressionsAndAlpha) {
  Bytes rows;
  for (int i = 0; i < 20 * 10 * 3; ++i) rows.push_back(static_cast<std::uint8_t>(i / 7));
  for (int const compression : {1, 5, 8})
    EXPECT_EQ(
        decode_image(encode_tiff({.size = {20, 10}, .compression = compression, .rows = rows}), {})
            .rgb,
        rows);
  auto const straight =
      encode_tiff({.size = {1, 1}, .samples = 4, .extra = 2, .rows = {100, 0, 255, 51}});
  auto const premultiplied =
      encode_tiff({.size = {1, 1}, .samples = 4, .extra = 1, .rows = {20, 0, 51, 51}});

  auto const grey =
      encode_tiff({.size = {1, 1}, .samples = 2, .photometric = 1, .extra = 2, .rows = {100, 51}});

  EXPECT_EQ(decode_image(straight, {}).rgb, (Bytes{224, 204, 255}));
  EXPECT_EQ(decode_image(grey, {}).rgb, (Bytes{224, 224, 224}));
  EXPECT_EQ(decode_image(premultiplied, {}).rgb, (Bytes{224, 204, 255}));
}

}  // namespace
}  // namespace vlrerank
