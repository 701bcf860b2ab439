// media/patches.cpp -- frames to patches. Bound by memory: each value is read and written once.
#include "media/patches.hpp"

#include "core/error.hpp"

namespace vlrerank {
namespace {

constexpr std::size_t patch = 16;
constexpr std::size_t block = 2;

/// One patch of one frame into its 3 x 16 x 16 places; channels lie 2 frames apart.
void copy_patch(std::uint8_t const* in, std::size_t stride, std::uint8_t* out) {
  for (std::size_t y = 0; y < patch; ++y, in += stride)
    for (std::size_t x = 0; x < patch; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        out[c * 2 * patch * patch + y * patch + x] = in[3 * x + c];
}

}  // namespace

void patchify(std::span<std::uint8_t const> frames_rgb, Grid grid, std::uint8_t* out) {
  VLR_REQUIRE(grid.t > 0 && grid.h > 0 && grid.w > 0 && grid.h % 2 == 0 && grid.w % 2 == 0,
              text("a grid of ", grid.t, "x", grid.h, "x", grid.w, " patches"),
              "this is a bug in the caller: pass positive, even sides");
  auto const pairs = static_cast<std::size_t>(grid.t);
  auto const rows = static_cast<std::size_t>(grid.h);
  auto const columns = static_cast<std::size_t>(grid.w);
  auto const stride = columns * patch * 3;
  auto const frame_bytes = rows * patch * stride;
  bool const still = pairs == 1 && frames_rgb.size() == frame_bytes;
  VLR_REQUIRE(still || frames_rgb.size() == 2 * pairs * frame_bytes,
              text(frames_rgb.size(), " bytes of frames for ", pairs, " pairs of ", frame_bytes),
              "this is a bug in the caller: pass two frames a pair");
  for (std::size_t pair = 0; pair < pairs; ++pair)
    for (std::size_t top = 0; top < rows; top += block)
      for (std::size_t left = 0; left < columns; left += block)
        for (std::size_t inner = 0; inner < block * block; ++inner, out += patch_values) {
          auto const row = top + inner / block;
          auto const column = left + inner % block;
          auto const at = row * patch * stride + column * patch * 3;
          for (std::size_t frame = 0; frame < 2; ++frame) {
            auto const source = still ? 0 : (2 * pair + frame) * frame_bytes;
            copy_patch(&frames_rgb[source + at], stride, out + frame * patch * patch);
          }
        }
}

}  // namespace vlrerank
