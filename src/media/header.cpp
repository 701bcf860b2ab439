// media/header.cpp -- the format by the first bytes; size and orientation of each format.
// Sources: PNG 3rd edition (chunks), ITU-T T.81 B.1 (JPEG markers), the WebP container
// specification, GIF89a, the BITMAPINFOHEADER family.
#include "media/header.hpp"

#include <algorithm>
#include <cctype>

#include "core/error.hpp"

namespace vlrerank {
namespace {

constexpr char const* replace_file = "replace the picture or remove it from the row";

void require_header(bool complete, Format format) {
  VLR_INPUT(complete, text("the ", name_of(format), " header is cut or damaged"), replace_file);
}

std::string head_of(ByteReader const& bytes, std::uint64_t count) {
  std::string head(std::min(bytes.size(), count), '\0');
  std::span const out(reinterpret_cast<std::uint8_t*>(head.data()), head.size());
  VLR_IO(bytes.read(0, out), "the first bytes of the picture cannot be read", "check the disk");
  return head;
}

/// What the bytes are, when they are no picture that we read.
std::string describe_unknown(std::string const& head) {
  std::string lower;
  for (char const c : head)
    if (!lower.empty() || !std::isspace(static_cast<unsigned char>(c)))
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.starts_with("\xef\xbb\xbf")) lower.erase(0, 3);
  auto const contains = [&](char const* word) { return lower.find(word) != std::string::npos; };
  if (lower.starts_with("<") && (contains("<svg")))
    return "this is SVG, a drawing in text, which is not read";
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html") || contains("<body"))
    return "this is an HTML page, not a picture";
  if (lower.starts_with("<")) return "this is an XML or HTML text, not a picture";
  if (lower.starts_with("%pdf")) return "this is a PDF, which is not read";
  if (lower.starts_with("8bps")) return "this is a Photoshop file, which is not read";
  if (head.size() > 11 && head.substr(4, 4) == "ftyp")
    return text("this is an ISO media file (", head.substr(8, 4),
                ": AVIF, HEIC or a video), which is not read as a picture");
  if (head.starts_with("\xff\x0a") || head.starts_with(std::string("\0\0\0\x0cJXL ", 8)))
    return "this is JPEG XL, which is not read";
  if (head.starts_with(std::string("\0\0\0\x0cjP  ", 8)))
    return "this is JPEG 2000, which is not read";
  if (std::all_of(lower.begin(), lower.end(), [](unsigned char c) { return c >= 9 && c < 127; }))
    return "this is text, not a picture";
  return "no picture format is known by these first bytes";
}

Format sniff(ByteReader const& bytes) {
  VLR_INPUT(bytes.size() > 0, "the picture is empty (0 bytes)", replace_file);
  auto const head = head_of(bytes, 256);
  if (head.starts_with("\x89PNG\r\n\x1a\n")) return Format::png;
  if (head.starts_with("\xff\xd8\xff")) return Format::jpeg;
  if (head.starts_with("RIFF") && head.substr(std::min<std::size_t>(8, head.size()), 4) == "WEBP")
    return Format::webp;
  if (head.starts_with("GIF87a") || head.starts_with("GIF89a")) return Format::gif;
  for (auto const* mark : {"II*\0", "MM\0*", "II+\0", "MM\0+"})
    if (head.starts_with(std::string_view(mark, 4))) return Format::tiff;
  if (head.starts_with("BM") && head.size() > 17) return Format::bmp;
  throw Error(Exit::input, describe_unknown(head),
              "use PNG, JPEG, WebP, GIF, BMP or TIFF (the format is told by the content)",
              VLR_WHERE);
}

/// Sizes are kept as numbers that cannot overflow until they are checked.
struct Found {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::int32_t orientation = 1;
};

Found read_png(ByteReader const& bytes, Exif exif) {
  Found found;
  std::uint32_t type = 0;
  require_header(bytes.number<4>(12, Order::big, type) && type == 0x49484452 &&  // "IHDR"
                     bytes.number<4>(16, Order::big, found.width) &&
                     bytes.number<4>(20, Order::big, found.height) && bytes.size() >= 33,
                 Format::png);
  // eXIf may follow the pixels. A file cut on the way there is found out when it is decoded.
  std::uint64_t at = 33;
  std::uint32_t length = 0;
  while (exif == Exif::apply && bytes.number<4>(at, Order::big, length) &&
         bytes.number<4>(at + 4, Order::big, type) && type != 0x49454e44) {  // "IEND"
    if (type == 0x65584966) {                                                // "eXIf"
      found.orientation = read_exif_orientation(bytes, at + 8);
      break;
    }
    at += std::uint64_t{12} + length;
  }
  return found;
}

bool is_frame_header(int marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

Found read_jpeg(ByteReader const& bytes, Exif exif) {
  constexpr std::uint64_t max_stray_bytes = 65536;
  Found found;
  bool oriented = exif == Exif::ignore;
  std::uint64_t at = 2;
  for (std::uint64_t stray = 0; stray < max_stray_bytes;) {
    std::uint8_t lead = 0;
    std::uint8_t marker = 0;
    if (!bytes.number<1>(at, Order::big, lead) || !bytes.number<1>(at + 1, Order::big, marker))
      break;
    if (lead != 0xff || marker == 0xff || marker == 0) {  // fill bytes and rubbish between segments
      ++at;
      ++stray;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += 2;
      ++stray;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda) break;  // end, or the pixels begin
    std::uint16_t length = 0;
    if (!bytes.number<2>(at + 2, Order::big, length) || length < 2) break;
    if (is_frame_header(marker))
      require_header(bytes.number<2>(at + 5, Order::big, found.height) &&
                         bytes.number<2>(at + 7, Order::big, found.width),
                     Format::jpeg);
    std::uint32_t mark = 0;
    if (marker == 0xe1 && !oriented && bytes.number<4>(at + 4, Order::big, mark) &&
        mark == 0x45786966) {  // "Exif"
      found.orientation = read_exif_orientation(bytes, at + 4);
      oriented = true;
    }
    at += std::uint64_t{2} + length;
  }
  require_header(found.width > 0 && found.height > 0, Format::jpeg);
  return found;
}

Found read_webp(ByteReader const& bytes, Exif exif) {
  Found found;
  std::uint32_t type = 0;
  require_header(bytes.number<4>(12, Order::big, type), Format::webp);
  std::uint32_t raw = 0;
  if (type == 0x56503820) {  // "VP8 ": 3 bytes of frame tag, 3 of start code, two 14-bit sides
    require_header(bytes.number<3>(23, Order::big, raw) && raw == 0x9d012a &&
                       bytes.number<2>(26, Order::little, found.width) &&
                       bytes.number<2>(28, Order::little, found.height),
                   Format::webp);
    found.width &= 0x3fff;
    found.height &= 0x3fff;
  } else if (type == 0x5650384c) {  // "VP8L": a signature byte, then sides less 1 in 14 bits each
    std::uint8_t signature = 0;
    require_header(bytes.number<1>(20, Order::little, signature) && signature == 0x2f &&
                       bytes.number<4>(21, Order::little, raw),
                   Format::webp);
    found.width = (raw & 0x3fff) + 1;
    found.height = (raw >> 14 & 0x3fff) + 1;
  } else {
    std::uint8_t flags = 0;
    require_header(type == 0x56503858 && bytes.number<1>(20, Order::little, flags) &&  // "VP8X"
                       bytes.number<3>(24, Order::little, found.width) &&
                       bytes.number<3>(27, Order::little, found.height),
                   Format::webp);
    ++found.width;
    ++found.height;
    std::uint64_t at = 12;
    std::uint32_t length = 0;
    while (exif == Exif::apply && (flags & 0x08) != 0 && bytes.number<4>(at, Order::big, type) &&
           bytes.number<4>(at + 4, Order::little, length)) {
      if (type == 0x45584946) {  // "EXIF"
        found.orientation = read_exif_orientation(bytes, at + 8);
        break;
      }
      at += std::uint64_t{8} + length + (length & 1);
    }
  }
  return found;
}

/// The canvas, widened to hold the first frame, which some writers place beyond it.
Found read_gif(ByteReader const& bytes) {
  Found found;
  std::uint8_t flags = 0;
  require_header(bytes.number<2>(6, Order::little, found.width) &&
                     bytes.number<2>(8, Order::little, found.height) &&
                     bytes.number<1>(10, Order::little, flags),
                 Format::gif);
  std::uint64_t at = 13;
  if ((flags & 0x80) != 0) at += std::uint64_t{6} << (flags & 7);  // colour table, 3 bytes each
  std::uint8_t block = 0;
  while (bytes.number<1>(at, Order::little, block) && block == 0x21) {  // extensions
    std::uint8_t length = 0;
    at += 2;
    while (bytes.number<1>(at, Order::little, length) && length > 0)
      at += std::uint64_t{1} + length;
    ++at;
  }
  std::uint16_t left = 0, top = 0, width = 0, height = 0;
  require_header(block == 0x2c && bytes.number<2>(at + 1, Order::little, left) &&
                     bytes.number<2>(at + 3, Order::little, top) &&
                     bytes.number<2>(at + 5, Order::little, width) &&
                     bytes.number<2>(at + 7, Order::little, height),
                 Format::gif);
  found.width = std::max<std::uint64_t>(found.width, std::uint64_t{left} + width);
  found.height = std::max<std::uint64_t>(found.height, std::uint64_t{top} + height);
  return found;
}

Found read_bmp(ByteReader const& bytes) {
  Found found;
  std::uint32_t header = 0;
  require_header(bytes.number<4>(14, Order::little, header), Format::bmp);
  if (header == 12) {
    require_header(bytes.number<2>(18, Order::little, found.width) &&
                       bytes.number<2>(20, Order::little, found.height),
                   Format::bmp);
    return found;
  }
  std::int32_t width = 0;
  std::int32_t height = 0;  // negative: rows from the top
  require_header(header >= 16 && header <= 256 && bytes.number<4>(18, Order::little, width) &&
                     bytes.number<4>(22, Order::little, height) && width > 0,
                 Format::bmp);
  found.width = static_cast<std::uint64_t>(width);
  found.height = static_cast<std::uint64_t>(height < 0 ? -std::int64_t{height} : height);
  return found;
}

Found read_tiff(ByteReader const& bytes, Exif exif) {
  auto const directory = read_tiff_directory(bytes, 0);
  require_header(directory.has_value(), Format::tiff);
  return {directory->width, directory->height, exif == Exif::apply ? directory->orientation : 1};
}

Found read_found(Format format, ByteReader const& bytes, Exif exif) {
  switch (format) {
    case Format::png:
      return read_png(bytes, exif);
    case Format::jpeg:
      return read_jpeg(bytes, exif);
    case Format::webp:
      return read_webp(bytes, exif);
    case Format::gif:
      return read_gif(bytes);
    case Format::bmp:
      return read_bmp(bytes);
    case Format::tiff:
      break;
  }
  return read_tiff(bytes, exif);
}

}  // namespace

char const* name_of(Format format) {
  switch (format) {
    case Format::png:
      return "png";
    case Format::jpeg:
      return "jpeg";
    case Format::webp:
      return "webp";
    case Format::gif:
      return "gif";
    case Format::bmp:
      return "bmp";
    case Format::tiff:
      break;
  }
  return "tiff";
}

RawHeader read_raw_header(ByteReader const& bytes, ImageOptions const& options) {
  constexpr std::uint64_t max_side = 0x7fffffff;
  auto const format = sniff(bytes);
  auto const found = read_found(format, bytes, options.exif);
  VLR_INPUT(
      found.width > 0 && found.height > 0 && found.width <= max_side && found.height <= max_side,
      text("the ", name_of(format), " header says ", found.width, "x", found.height, " pixels"),
      replace_file);
  VLR_INPUT(
      found.width * found.height <= static_cast<std::uint64_t>(options.max_pixels),
      text(found.width, "x", found.height, " pixels, the limit is ", options.max_pixels, " in all"),
      "scale the picture down before training");
  return {format,
          {static_cast<std::int32_t>(found.height), static_cast<std::int32_t>(found.width)},
          found.orientation};
}

}  // namespace vlrerank
