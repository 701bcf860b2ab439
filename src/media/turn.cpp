// media/turn.cpp -- pictures stored on their side or mirrored, set upright.
#include "media/turn.hpp"

#include <algorithm>
#include <cstddef>

namespace vlrerank {
namespace {

bool swaps_sides(std::int32_t orientation) {
  return orientation >= 5;
}

}  // namespace

ImageSize turned(ImageSize size, std::int32_t orientation) {
  return swaps_sides(orientation) ? ImageSize{size.width, size.height} : size;
}

Image turn(Image stored, std::int32_t orientation) {
  if (orientation == 1) return stored;
  bool const from_bottom = orientation == 3 || orientation == 4 || orientation >= 7;
  bool const from_right =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  Image upright{turned(stored.size, orientation), std::vector<std::uint8_t>(stored.rgb.size())};
  auto const [height, width] = upright.size;
  std::ptrdiff_t const stride = std::ptrdiff_t{3} * stored.size.width;
  // Steps through the stored bytes for one step right and one step down in the upright picture.
  auto const right = (swaps_sides(orientation) ? stride : 3) * (from_right ? -1 : 1);
  auto const down = (swaps_sides(orientation) ? 3 : stride) * (from_bottom ? -1 : 1);
  auto const* row = stored.rgb.data();
  if (from_right) row -= right * (width - 1);
  if (from_bottom) row -= down * (height - 1);
  auto* out = upright.rgb.data();
  for (std::int32_t y = 0; y < height; ++y, row += down) {
    auto const* pixel = row;
    for (std::int32_t x = 0; x < width; ++x, pixel += right) out = std::copy_n(pixel, 3, out);
  }
  return upright;
}

}  // namespace vlrerank
