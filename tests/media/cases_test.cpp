// tests/media/cases_test.cpp -- public reports about pictures (I02 to I16) by id, each with further
// inputs of the same kind.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "media/encoders.hpp"
#include "media/image.hpp"
#include "support/golden.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

using Pixel = std::array<int, 3>;

Pixel pixel_at(Image const& image, std::int32_t y, std::int32_t x) {
  auto const at = static_cast<std::size_t>((y * image.size.width + x) * 3);
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

std::string sha256(std::vector<std::uint8_t> const& bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  std::string out;
  for (auto const byte : digest) {
    out += "0123456789abcdef"[byte / 16];
    out += "0123456789abcdef"[byte % 16];
  }
  return out;
}

ImageSource case_file(std::string const& name) {
  return {test_data("cases/files/" + name).string(), ""};
}

nlohmann::json expected_of(std::string const& id) {
  static auto const all = nlohmann::json::parse(read_file(test_data("cases/expected.json")));
  return all.at(id);
}

/// The reason why a picture is refused; empty when it is not.
std::string refusal(ImageSource const& source, ImageOptions const& options = {}) {
  try {
    load_image(source, options);
    return "";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input) << error.what();
    return error.summary();
  }
}

/// Compares a picture with an entry of expected.json: size, colours, and its geometry.
void expect_picture(std::string const& file, nlohmann::json const& expected, double tolerance) {
  auto const image = decode_image(read_source(case_file(file), {}), {});
  ASSERT_EQ(image.size.width, expected.at("size_wh")[0]) << file;
  ASSERT_EQ(image.size.height, expected.at("size_wh")[1]) << file;
  auto const last = pixel_at(image, image.size.height - 1, image.size.width - 1);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(pixel_at(image, 0, 0)[c], expected.at("px_topleft")[c].get<int>(), tolerance);
    EXPECT_NEAR(last[c], expected.at("px_bottomright")[c].get<int>(), tolerance) << file;
    double sum = 0;
    for (std::size_t i = c; i < image.rgb.size(); i += 3) sum += image.rgb[i];
    EXPECT_NEAR(sum * 3 / static_cast<double>(image.rgb.size()),
                expected.at("rgb_mean")[c].get<double>(), tolerance + 1e-3);
  }
  EXPECT_EQ(sha256(image.rgb), expected.at("sha256_rgb8").get<std::string>()) << file;

  for (auto const& [profile, tokens] :
       {std::pair{"official_reranker", 1800}, std::pair{"msswift_default", 16384}}) {
    ImageOptions options;
    options.max_tokens = tokens;
    auto const loaded = load_image(case_file(file), options);
    auto const& geometry = expected.at("geometry").at(profile);
    EXPECT_EQ(loaded.resized.size.height, geometry.at("resized_hw")[0]) << file;
    EXPECT_EQ(loaded.resized.size.width, geometry.at("resized_hw")[1]) << file;
    EXPECT_EQ(loaded.grid.h, geometry.at("grid_thw")[1]);
    EXPECT_EQ(loaded.grid.w, geometry.at("grid_thw")[2]);
    EXPECT_EQ(loaded.grid.tokens(), geometry.at("image_tokens"));
  }
}

class ReportedPictures : public testing::TestWithParam<char const*> {};

TEST_P(ReportedPictures, HaveTheExpectedPixelsAndGrids) {
  auto const entry = expected_of(GetParam());

  for (auto const& [file, expected] : entry.at("expected").items())
    expect_picture(file, expected, entry.at("tol_rgb"));
}

INSTANTIATE_TEST_SUITE_P(Cases, ReportedPictures,
                         testing::Values("I02", "I03", "I04", "I06", "I07", "I13"),
                         [](auto const& tested) { return tested.param; });

TEST(I02, AlphaOfGreyAndOfWebpIsBlendedOverWhite) {
  auto const png = decode_image(
      encode_png({.size = {1, 3}, .colour_type = 4, .rows = {10, 0, 10, 255, 100, 51}}), {});
  auto const webp =
      decode_image(encode_webp({1, 3}, {9, 9, 9, 0, 1, 2, 3, 255, 100, 0, 255, 51}), {});

  EXPECT_EQ(png.rgb, (std::vector<std::uint8_t>{255, 255, 255, 10, 10, 10, 224, 224, 224}));
  EXPECT_EQ(webp.rgb, (std::vector<std::uint8_t>{255, 255, 255, 1, 2, 3, 224, 204, 255}));
}

TEST(I02, SixteenBitAlphaIsBlendedToo) {
  auto const image = decode_image(
      encode_png(
          {.size = {1, 1}, .bits = 16, .colour_type = 6, .rows = {0, 0, 255, 255, 0, 0, 128, 0}}),
      {});

  EXPECT_EQ(pixel_at(image, 0, 0), (Pixel{127, 255, 127}));
}

TEST(I03, TransparencyOfFewBitsIsHonoured) {
  auto const grey = decode_image(
      encode_png({.size = {1, 4}, .bits = 2, .colour_type = 0, .rows = {0x1b}, .transparent = {1}}),
      {});
  auto const palette = decode_image(encode_png({.size = {1, 2},
                                                .bits = 1,
                                                .colour_type = 3,
                                                .rows = {0x40},
                                                .palette = {200, 0, 0, 0, 200, 0},
                                                .palette_alpha = {51}}),
                                    {});

  EXPECT_EQ(grey.rgb,
            (std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255, 170, 170, 170, 255, 255, 255}));
  EXPECT_EQ(palette.rgb, (std::vector<std::uint8_t>{244, 204, 204, 0, 200, 0}));
}

TEST(I03, TransparencyOfDeepSamplesComparesAllSixteenBits) {
  auto const image = decode_image(encode_png({.size = {1, 2},
                                              .bits = 16,
                                              .colour_type = 0,
                                              .rows = {0x12, 0x34, 0x12, 0x35},
                                              .transparent = {0x1234}}),
                                  {});

  EXPECT_EQ(pixel_at(image, 0, 0), (Pixel{255, 255, 255}));
  EXPECT_EQ(pixel_at(image, 0, 1), (Pixel{18, 18, 18}));
}

TEST(I04, EverySixteenBitValueIsRoundedToNearest) {
  std::vector<std::uint8_t> rows;
  for (int value = 0; value < 65536; ++value) {
    rows.push_back(static_cast<std::uint8_t>(value >> 8));
    rows.push_back(static_cast<std::uint8_t>(value));
  }
  auto const image = decode_image(
      encode_png({.size = {256, 256}, .bits = 16, .colour_type = 0, .rows = rows}), {});

  for (std::size_t value = 0; value < 65536; ++value)
    ASSERT_EQ(image.rgb[3 * value], std::lround(static_cast<double>(value) * 255 / 65535));
}

TEST(I04, DeepTiffIsScaledAsWell) {
  std::vector<std::uint8_t> rows;
  for (std::uint16_t const value : {0, 127, 129, 32768, 65407, 65535}) {
    rows.push_back(static_cast<std::uint8_t>(value));
    rows.push_back(static_cast<std::uint8_t>(value >> 8));
  }
  auto const grey = decode_image(
      encode_tiff({.size = {1, 6}, .bits = 16, .samples = 1, .photometric = 1, .rows = rows}), {});
  auto const rgb = decode_image(encode_tiff({.size = {1, 2}, .bits = 16, .rows = rows}), {});

  EXPECT_EQ(pixel_at(grey, 0, 1), (Pixel{0, 0, 0}));
  EXPECT_EQ(pixel_at(grey, 0, 2), (Pixel{1, 1, 1}));
  EXPECT_EQ(pixel_at(grey, 0, 5), (Pixel{255, 255, 255}));
  EXPECT_EQ(pixel_at(rgb, 0, 0), (Pixel{0, 0, 1}));
  EXPECT_EQ(pixel_at(rgb, 0, 1), (Pixel{128, 255, 255}));
}

TEST(I06, GreyOfEveryFormatBecomesThreeEqualChannels) {
  std::vector<std::uint8_t> const grey(64 * 64, 77);
  auto const progressive = encode_jpeg({64, 64}, JpegSpace::grey, grey, /*progressive=*/true);
  auto const bmp = encode_bmp({1, 2}, 1, {0x40, 0, 0, 0}, {0, 0, 0, 0, 77, 77, 77, 0});
  auto const white_is_zero =
      encode_tiff({.size = {1, 2}, .samples = 1, .photometric = 0, .rows = {0, 178}});

  EXPECT_EQ(pixel_at(decode_image(progressive, {}), 5, 5), (Pixel{77, 77, 77}));
  EXPECT_EQ(decode_image(bmp, {}).rgb, (std::vector<std::uint8_t>{0, 0, 0, 77, 77, 77}));
  EXPECT_EQ(decode_image(white_is_zero, {}).rgb,
            (std::vector<std::uint8_t>{255, 255, 255, 77, 77, 77}));
}

TEST(I07, TheSmallestPictureOfEveryFormatGrowsToFourTokens) {
  std::vector<std::uint8_t> const rgb = {33, 66, 99};
  for (auto const& bytes :
       {encode_jpeg({1, 1}, JpegSpace::rgb, rgb), encode_webp({1, 1}, {33, 66, 99, 255}),
        encode_gif({1, 1}, {33, 66, 99, 0, 0, 0}, {{0, 0, {1, 1}, {0}}}),
        encode_bmp({1, 1}, 24, {99, 66, 33, 0}), encode_tiff({.size = {1, 1}, .rows = rgb})}) {
    auto const loaded = load_image({"", bytes}, {});

    EXPECT_EQ(loaded.grid, (Grid{1, 4, 4}));
    EXPECT_NEAR(pixel_at(loaded.resized, 63, 63)[1], 66, 3);
  }
}

TEST(I08, RatiosAboveTwoHundredAreRefusedByName) {
  ImageOptions options;
  options.max_tokens = 1800;
  auto const fine = load_image(case_file("I08_400x2.png"), options);
  auto const wide = refusal(case_file("I08_402x2.png"), options);
  auto const tall = refusal(case_file("I08_2x455.png"), options);

  EXPECT_EQ(fine.resized.size, (ImageSize{32, 384}));
  EXPECT_EQ(fine.grid, (Grid{1, 2, 24}));
  EXPECT_NE(wide.find("I08_402x2.png"), std::string::npos) << wide;
  EXPECT_NE(wide.find("ratio 201"), std::string::npos) << wide;
  EXPECT_NE(wide.find("200"), std::string::npos) << wide;
  EXPECT_NE(tall.find("I08_2x455.png"), std::string::npos) << tall;
  EXPECT_NE(tall.find("227.5"), std::string::npos) << tall;
}

TEST(I08, TheRatioIsThatOfTheUprightPictureAndExactAtTheEdge) {
  std::vector<std::uint8_t> const line(3 * 1000, 7);
  auto const exact = encode_jpeg({5, 1000}, JpegSpace::rgb, std::vector<std::uint8_t>(15000, 7),
                                 false, exif_block(6));

  EXPECT_EQ(load_image({"", exact}, {}).source_size, (ImageSize{1000, 5}));
  EXPECT_NE(refusal({"", encode_bmp({1, 1000}, 24, line)}).find("1000x1"), std::string::npos);
  EXPECT_NE(refusal({"", encode_png({.size = {1, 201}, .rows = std::vector<std::uint8_t>(603)})})
                .find("ratio 201"),
            std::string::npos);
}

TEST(I12, TheContentDecidesNotTheName) {
  auto const expected = expected_of("I12").at("expected");
  for (auto const* name : {"I12_a.jpg", "I12_b.jpeg", "I12_c.png", "I12_d"}) {
    auto const image = decode_image(read_source(case_file(name), {}), {});
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(pixel_at(image, 3, 3)[c], expected.at("rgb")[c].get<int>(), 3) << name;
  }
  auto const html = refusal(case_file("I12_e.jpg"));
  auto const svg = refusal(case_file("I12_f.png"));

  EXPECT_NE(html.find("I12_e.jpg"), std::string::npos) << html;
  EXPECT_NE(html.find("HTML"), std::string::npos) << html;
  EXPECT_NE(svg.find("I12_f.png"), std::string::npos) << svg;
  EXPECT_NE(svg.find("SVG"), std::string::npos) << svg;
}

TEST(I12, WhatIsNoPictureIsNamed) {
  for (auto const& [bytes, word] : std::vector<std::pair<std::string, std::string>>{
           {"\n  <html><head>", "HTML"},
           {"\xef\xbb\xbf<!DOCTYPE HTML PUBLIC", "HTML"},
           {"<?xml version=\"1.0\"?><svg/>", "SVG"},
           {"{\"error\": \"not found\"}", "text"},
           {"%PDF-1.7\n\x80\x81", "PDF"},
           {std::string("\0\0\0\x1c"
                        "ftypavif\0\0\0\0",
                        16),
            "AVIF"},
           {std::string("\0\1\2\3\4\5\6\7\x80\x90", 10), "known"}})
    EXPECT_NE(refusal({"", bytes}).find(word), std::string::npos) << refusal({"", bytes});
}

TEST(I13, TheFirstFrameIsPlacedOnItsCanvas) {
  std::vector<std::uint8_t> const colours = {10, 20, 30, 200, 100, 50, 1, 2, 3, 4, 5, 6};
  auto const offset = encode_gif(
      {4, 4}, colours, {{1, 2, {1, 2}, {1, 2}}, {0, 0, {4, 4}, std::vector<std::uint8_t>(16, 3)}});
  auto const transparent =
      encode_gif({1, 3}, colours, {{0, 0, {1, 3}, {1, 2, 1}, /*transparent=*/2}});
  auto const image = decode_image(offset, {});

  EXPECT_EQ(pixel_at(image, 2, 1), (Pixel{200, 100, 50}));
  EXPECT_EQ(pixel_at(image, 2, 2), (Pixel{1, 2, 3}));
  EXPECT_EQ(pixel_at(image, 0, 0), (Pixel{10, 20, 30})) << "the background colour";
  EXPECT_EQ(decode_image(transparent, {}).rgb,
            (std::vector<std::uint8_t>{200, 100, 50, 255, 255, 255, 200, 100, 50}));
}

TEST(I13, InterlacedRowsAndFramesBeyondTheCanvasAreInPlace) {
  std::vector<std::uint8_t> colours;
  for (int i = 0; i < 16; ++i) colours.insert(colours.end(), 3, static_cast<std::uint8_t>(i));
  std::vector<std::uint8_t> rows;
  for (std::uint8_t y = 0; y < 13; ++y) rows.insert(rows.end(), 2, y);
  auto const image = decode_image(
      encode_gif({4, 1}, colours, {{0, 0, {13, 2}, rows, -1, /*interlaced=*/true}}), {});

  ASSERT_EQ(image.size, (ImageSize{13, 2}));
  for (int y = 0; y < 13; ++y) EXPECT_EQ(pixel_at(image, y, 1), (Pixel{y, y, y}));
}

TEST(I14, TheLimitHoldsWhateverItIs) {
  auto const expected = expected_of("I14").at("expected");
  for (auto const& [profile, entry] : expected.items()) {
    if (profile == "hf_preprocessor_default") continue;
    auto const found = fit_size({1500, 2000}, 32, entry.at("min_pixels"), entry.at("max_pixels"));
    EXPECT_EQ(found.height, entry.at("resized_hw")[0]) << profile;
    EXPECT_EQ(found.width, entry.at("resized_hw")[1]) << profile;
  }
  for (std::int32_t const tokens : {4, 5, 64, 1000, 1280, 16384}) {
    ImageOptions options;
    options.max_tokens = tokens;
    for (ImageSize const size : {ImageSize{1500, 2000}, ImageSize{4000, 3000}, ImageSize{70, 90}})
      EXPECT_LE(grid_of(target_size(size, options)).tokens(), tokens);
  }
}

TEST(I16, SizesAreCheckedBeforeAnythingIsDecoded) {
  auto const bomb = refusal(case_file("I16_bomb.png"));
  ImageOptions strict;
  strict.max_pixels = 63 * 64;
  std::vector<std::uint8_t> const pixels(64 * 64 * 4, 1);

  EXPECT_NE(bomb.find("20000x20000"), std::string::npos) << bomb;
  EXPECT_NE(bomb.find("I16_bomb.png"), std::string::npos) << bomb;
  EXPECT_NE(refusal({"", encode_webp({64, 64}, pixels)}, strict).find("64x64"), std::string::npos);
  EXPECT_NE(refusal({"", encode_jpeg({64, 64}, JpegSpace::rgb, pixels)}, strict).find("64x64"),
            std::string::npos);
}

TEST(I16, HugeTextsAreSkipped) {
  auto const image = decode_image(read_source(case_file("I16_ztxt.png"), {}), {});
  auto const large =
      encode_png({.size = {1, 1}, .rows = {5, 6, 7}, .text = std::string(20'000'000, 'x')});

  EXPECT_EQ(pixel_at(image, 0, 0), (Pixel{5, 6, 7}));
  EXPECT_EQ(pixel_at(decode_image(large, {}), 0, 0), (Pixel{5, 6, 7}));
}

}  // namespace
}  // namespace vlrerank
