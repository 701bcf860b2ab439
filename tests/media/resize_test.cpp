// tests/media/resize_test.cpp -- the fast passes against the defining ones, and plain facts.
#include <gtest/gtest.h>

#include <random>

#include "core/error.hpp"
#include "media/image.hpp"
#include "media/patches.hpp"
#include "media/resize_passes.hpp"

namespace vlrerank {
namespace {

std::vector<std::uint8_t> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  // Mostly extremes: they reach the ends of every sum.
  for (auto& byte : bytes) {
    auto const draw = random();
    byte = static_cast<std::uint8_t>(draw % 4 == 0 ? draw >> 8 : draw % 2 * 255);
  }
  return bytes;
}

struct Change {
  std::int32_t from, to;
};

class Passes : public testing::TestWithParam<Change> {};

TEST_P(Passes, Avx2EqualsThePortableForm) {
  if (!have_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  auto const [from, to] = GetParam();
  auto const taps = bicubic_taps(from, to);
  for (std::int32_t const other : {1, 3, 4, 5, 6, 11, 33}) {
    auto const in = noise(static_cast<std::size_t>(from * other * 3), 7);
    std::vector<std::uint8_t> portable(static_cast<std::size_t>(to * other * 3));
    std::vector<std::uint8_t> fast(portable.size());

    resize_columns_portable(in.data(), from, other, taps, portable.data());
    resize_columns_avx2(in.data(), from, other, taps, fast.data());
    EXPECT_EQ(portable, fast) << "columns of " << other << " rows";
    auto const row_bytes = static_cast<std::size_t>(3 * other);
    resize_rows_portable(in.data(), row_bytes, taps, portable.data());
    resize_rows_avx2(in.data(), row_bytes, taps, fast.data());
    EXPECT_EQ(portable, fast) << "rows of " << other << " pixels";
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, Passes,
                         testing::Values(Change{1, 64}, Change{2, 32}, Change{3, 3}, Change{5, 4},
                                         Change{31, 32}, Change{100, 96}, Change{97, 32},
                                         Change{640, 352}, Change{1000, 33}, Change{64, 2048},
                                         Change{5000, 32}, Change{20000, 32}));

TEST(Resize, ThePassThatChangesNothingIsLeftOut) {
  Image const image{{40, 30}, noise(40 * 30 * 3, 1)};

  EXPECT_EQ(resize_bicubic(image, {40, 30}).rgb, image.rgb);
}

TEST(Resize, AFlatPictureStaysFlat) {
  for (std::uint8_t const shade : {0, 1, 127, 254, 255}) {
    Image const image{{37, 53}, std::vector<std::uint8_t>(37 * 53 * 3, shade)};
    for (ImageSize const size : {ImageSize{64, 32}, ImageSize{32, 96}, ImageSize{320, 640}})
      for (auto const value : resize_bicubic(image, size).rgb) ASSERT_EQ(value, shade);
  }
}

TEST(Resize, WrongBytesAreACallersBug) {
  Image const image{{2, 2}, std::vector<std::uint8_t>(11)};

  EXPECT_THROW(resize_bicubic(image, {32, 32}), Error);
  EXPECT_THROW(resize_bicubic({{2, 2}, std::vector<std::uint8_t>(12)}, {0, 32}), Error);
}

TEST(Patchify, AVideoOfEqualFramesEqualsTheStillPicture) {
  Grid const still{1, 4, 6};
  auto const frame = noise(64 * 96 * 3, 3);
  std::vector<std::uint8_t> frames = frame;
  frames.insert(frames.end(), frame.begin(), frame.end());
  std::vector<std::uint8_t> once(24 * patch_values);
  std::vector<std::uint8_t> twice(once.size());

  patchify(frame, still, once.data());
  patchify(frames, still, twice.data());

  EXPECT_EQ(once, twice);
  EXPECT_THROW(patchify(frame, {2, 4, 6}, once.data()), Error);
}

}  // namespace
}  // namespace vlrerank
