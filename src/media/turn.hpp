// media/turn.hpp -- pictures stored on their side or mirrored, set upright.
#pragma once

#include <cstdint>

#include "media/image.hpp"

namespace vlrerank {

/// The upright size of a picture stored with EXIF's orientation 1..8.
ImageSize turned(ImageSize size, std::int32_t orientation);

/// The upright picture. EXIF's 1..8 tell at which of its sides the stored rows and columns start:
/// 1 is upright, 3 upside down, 6 and 8 a quarter turn, the others mirrored.
Image turn(Image stored, std::int32_t orientation);

}  // namespace vlrerank
