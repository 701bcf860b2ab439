// media/header.hpp -- format, stored size and orientation, read without decoding.
#pragma once

#include <cstdint>
#include <optional>

#include "media/bytes.hpp"
#include "media/image.hpp"

namespace vlrerank {

enum class Format { png, jpeg, webp, gif, bmp, tiff };

char const* name_of(Format format);

/// What the file says of itself. `stored` is the size before turning.
struct RawHeader {
  Format format = Format::png;
  ImageSize stored;
  std::int32_t orientation = 1;  ///< EXIF's 1..8; 1 when absent, unusable or ignored
};

/// Throws Error (exit 3): not a picture (HTML, text, ...), a format we do not read, a cut header,
/// a side of 0, more than options.max_pixels.
RawHeader read_raw_header(ByteReader const& bytes, ImageOptions const& options);

/// First directory of a TIFF structure, which EXIF blocks use too.
struct TiffDirectory {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::int32_t orientation = 1;
};
/// @param start  where the structure begins, from which its offsets count
/// Nothing when it is cut or malformed.
std::optional<TiffDirectory> read_tiff_directory(ByteReader const& bytes, std::uint64_t start);
/// Orientation of an EXIF block at `start`, with or without its "Exif" mark; 1 when unusable.
std::int32_t read_exif_orientation(ByteReader const& bytes, std::uint64_t start);

}  // namespace vlrerank
