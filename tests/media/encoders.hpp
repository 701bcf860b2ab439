// tests/media/encoders.hpp -- writes small pictures of every format into memory, for the tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/image.hpp"

namespace vlrerank {

/// Samples as the file stores them: palette indices, grey, RGB, ... big-endian when 16 bits deep.
struct PngPicture {
  ImageSize size = {};
  int bits = 8;
  int colour_type = 2;  ///< 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA
  std::vector<std::uint8_t> rows = {};
  std::vector<std::uint8_t> palette = {};        ///< RGB each
  std::vector<std::uint8_t> palette_alpha = {};  ///< tRNS of a palette
  std::vector<std::uint16_t> transparent = {};   ///< tRNS of grey (1 value) or RGB (3 values)
  std::string exif = {};
  bool interlaced = false;
  std::string text = {};  ///< a compressed text chunk
};
std::string encode_png(PngPicture const& picture);

enum class JpegSpace { grey, rgb, cmyk, ycck };

/// @param samples  1, 3 or 4 a pixel
/// @param exif     put into an APP1 segment unless empty
std::string encode_jpeg(ImageSize size, JpegSpace space, std::vector<std::uint8_t> const& samples,
                        bool progressive = false, std::string const& exif = "");

/// @param samples  RGBA; lossless
std::string encode_webp(ImageSize size, std::vector<std::uint8_t> const& samples);

struct GifFrame {
  int left = 0;
  int top = 0;
  ImageSize size = {};
  std::vector<std::uint8_t> indices = {};
  int transparent = -1;
  bool interlaced = false;
};
/// @param colours  RGB each, a power of two of them
std::string encode_gif(ImageSize canvas, std::vector<std::uint8_t> const& colours,
                       std::vector<GifFrame> const& frames);

/// A bitmap file with a 40-byte header, or more with masks (red, green, blue, alpha).
/// @param rows  as stored, padded to 4 bytes
std::string encode_bmp(ImageSize size, int bits, std::vector<std::uint8_t> const& rows,
                       std::vector<std::uint8_t> const& palette_bgrx = {},
                       std::vector<std::uint32_t> const& masks = {}, bool from_top = false);

struct TiffPicture {
  ImageSize size = {};
  int bits = 8;
  int samples = 3;
  int photometric = 2;  ///< 0 white is 0, 1 black is 0, 2 RGB
  int compression = 1;  ///< 1 none, 5 LZW, 8 deflate
  int orientation = 1;
  int extra = -1;  ///< kind of the last sample: 1 associated alpha, 2 straight alpha
  std::vector<std::uint8_t> rows = {};  ///< in the machine's byte order
};
std::string encode_tiff(TiffPicture const& picture);

/// An EXIF block (a TIFF structure) that holds nothing but the orientation.
std::string exif_block(int orientation, bool big_endian = false);

}  // namespace vlrerank
