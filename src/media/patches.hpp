// media/patches.hpp -- pixels in the order in which the vision tower reads them.
#pragma once

#include <cstdint>
#include <span>

#include "media/image.hpp"

namespace vlrerank {

/// Values of one row: 3 channels x 2 frames x 16 x 16 pixels.
inline constexpr std::int32_t patch_values = 1536;

/// Cuts frames into patches. Rows run over (frame pair, block row, block column, row in block,
/// column in block) with blocks of 2 x 2 patches; inside a row (channel, frame, y, x).
/// A pixel value is (u8 - 127.5) / 127.5.
///
/// @param frames_rgb  2 * grid.t frames of (16 grid.h) x (16 grid.w) RGB, or a single one when
///                    grid.t is 1: a still picture, which fills both frames
/// @param out         [t * h * w, 1536]
void patchify(std::span<std::uint8_t const> frames_rgb, Grid grid, std::uint8_t* out);

}  // namespace vlrerank
