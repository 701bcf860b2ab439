// media/codecs.hpp -- what the decoders of single formats give to media/image.cpp.
// Each takes a whole file whose header was read and checked, and gives its first picture as it
// lies in the file: not yet turned, alpha not yet blended. Each throws Error (exit 3).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "media/image.hpp"

namespace vlrerank {

/// 8-bit pixels, rows from the top. With 4 channels the last is straight (not premultiplied) alpha.
struct Raster {
  ImageSize size;
  std::int32_t channels = 3;
  std::vector<std::uint8_t> pixels;
};

/// An empty raster of that size.
inline Raster make_raster(ImageSize size, std::int32_t channels) {
  auto const pixels = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  return {size, channels, std::vector<std::uint8_t>(pixels * static_cast<std::size_t>(channels))};
}

/// @param size  as the header says, before turning
Raster decode_png(std::string_view bytes, ImageSize size);
Raster decode_jpeg(std::string_view bytes, ImageSize size);
Raster decode_webp(std::string_view bytes, ImageSize size);
Raster decode_gif(std::string_view bytes, ImageSize size);
Raster decode_bmp(std::string_view bytes, ImageSize size);
Raster decode_tiff(std::string_view bytes, ImageSize size);

}  // namespace vlrerank
