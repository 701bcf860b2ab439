// media/image.hpp -- pictures as the processor wants them: decoded, upright, over white, resized.
// The format is told by the first bytes, never by the name; the size is read from the header and
// checked before a pixel is decoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "media/source.hpp"

namespace vlrerank {

struct ImageSize {
  std::int32_t height = 0;
  std::int32_t width = 0;
  friend bool operator==(ImageSize const&, ImageSize const&) = default;
};

/// 8-bit RGB, rows from the top, interleaved: rgb[(y * width + x) * 3 + channel].
struct Image {
  ImageSize size;
  std::vector<std::uint8_t> rgb;
};

/// Patches of 16 x 16 pixels: temporal (frame pairs), rows, columns. Tokens: t * h * w / 4.
struct Grid {
  std::int32_t t = 1;
  std::int32_t h = 0;
  std::int32_t w = 0;
  std::int32_t tokens() const { return t * h * w / 4; }
  friend bool operator==(Grid const&, Grid const&) = default;
};

enum class Exif { apply, ignore };

struct ImageOptions {
  std::int32_t min_tokens = 4;     ///< of 32 x 32 pixels each
  std::int32_t max_tokens = 1280;  ///< the reference script's: 1800
  Exif exif = Exif::apply;
  std::int64_t max_pixels = 178'956'970;  ///< header limit before decoding
  std::string root;                       ///< not empty: paths must stay below it
};

/// The first-bytes format and the size in the header, after EXIF when asked.
struct ImageHeader {
  std::string format;  ///< "png", "jpeg", "webp", "gif", "bmp", "tiff"
  ImageSize size;
};

/// The bytes of a source: the file's, or those it carries. Throws Error (exit 3) naming the path.
std::string read_source(ImageSource const& source, ImageOptions const& options);
/// Reads the header only. Throws Error (exit 3): unknown format, cut file, too many pixels.
ImageHeader read_image_header(std::string_view bytes, ImageOptions const& options);
/// Decodes to RGB: EXIF orientation, alpha over white, 16 bit scaled, first frame of an animation.
Image decode_image(std::string_view bytes, ImageOptions const& options);

/// Reads only as much of the source as its header needs; a file is not loaded.
ImageHeader probe_image(ImageSource const& source, ImageOptions const& options);

/// decode_image() of a source; a file is loaded only when its header is that of a picture.
/// Errors name the path.
Image decode_source(ImageSource const& source, ImageOptions const& options);

/// The rule under target_size: sides rounded to multiples of `factor` (halves to even, at least
/// one), then both scaled when their product leaves [min_pixels, max_pixels].
/// Throws Error (exit 3) when the aspect ratio exceeds 200 or a side would become 0.
ImageSize fit_size(ImageSize size, std::int32_t factor, double min_pixels, double max_pixels);
/// The size to which a picture is resized: multiples of 32 within the token limits
/// (qwen-vl-utils' rule, `rule: reranker` of the reference). Throws Error (exit 3) when the aspect
/// ratio exceeds 200 or a side would become 0.
ImageSize target_size(ImageSize size, ImageOptions const& options);
/// Patch grid of a resized still picture.
Grid grid_of(ImageSize resized);
/// Bit-equal to Pillow <= 12's BICUBIC: antialiased, 22-bit fixed point, columns then rows.
Image resize_bicubic(Image const& image, ImageSize size);

/// Decoded and resized in one step, with what was seen on the way. Errors name the path.
struct LoadedImage {
  ImageSize source_size;
  Image resized;
  Grid grid;
};
LoadedImage load_image(ImageSource const& source, ImageOptions const& options);

}  // namespace vlrerank
