// media/bmp.cpp -- Windows and OS/2 bitmaps: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits
// with or without masks. The run-length and embedded forms are refused by name.
// Source: the BITMAPCOREHEADER and BITMAPINFOHEADER to BITMAPV5HEADER structures.
#include <algorithm>
#include <array>
#include <bit>

#include "core/error.hpp"
#include "media/bytes.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

constexpr char const* resave = "save it as PNG or as an uncompressed bitmap";

enum class Packing : std::uint32_t { plain = 0, masks = 3, masks_with_alpha = 6 };

struct BmpHeader {
  std::uint32_t data_at = 0;  ///< offset of the pixels
  std::uint32_t size = 0;     ///< bytes of the header after the 14 of the file header
  std::uint32_t bits = 0;     ///< a pixel
  std::uint32_t packing = 0;
  std::uint32_t colours = 0;  ///< entries of the palette
  bool from_top = false;
  std::array<std::uint32_t, 4> masks{};  ///< red, green, blue, alpha
};

void require_data(bool complete) {
  VLR_INPUT(complete, "damaged BMP: the data are cut", "replace the picture");
}

void read_masks(ByteReader const& bytes, BmpHeader& header) {
  if (header.packing == 0) {
    if (header.bits == 16) header.masks = {0x7c00, 0x03e0, 0x001f, 0};
    if (header.bits == 32) header.masks = {0x00ff0000, 0x0000ff00, 0x000000ff, 0};
    return;
  }
  bool const alpha = header.size >= 56 || header.packing == 6;
  for (std::size_t i = 0; i < (alpha ? 4u : 3u); ++i)
    require_data(bytes.number<4>(54 + 4 * i, Order::little, header.masks[i]));
}

BmpHeader read_header(ByteReader const& bytes) {
  BmpHeader header;
  require_data(bytes.number<4>(10, Order::little, header.data_at) &&
               bytes.number<4>(14, Order::little, header.size));
  if (header.size == 12) {
    require_data(bytes.number<2>(24, Order::little, header.bits));
  } else {
    std::int32_t height = 0;
    require_data(bytes.number<4>(22, Order::little, height) &&
                 bytes.number<2>(28, Order::little, header.bits));
    header.from_top = height < 0;
    if (header.size >= 40)
      require_data(bytes.number<4>(30, Order::little, header.packing) &&
                   bytes.number<4>(46, Order::little, header.colours));
  }
  static constexpr std::array<char const*, 7> packings = {
      "", "8-bit run-length", "4-bit run-length", "", "JPEG", "PNG", ""};
  VLR_INPUT(header.packing < packings.size(), text("BMP of unknown compression ", header.packing),
            resave);
  VLR_INPUT(*packings[header.packing] == '\0',
            text("BMP with ", packings[header.packing], " compression, which is not read"), resave);
  auto const bits = header.bits;
  VLR_INPUT(
      bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32,
      text("BMP of ", bits, " bits a pixel, which is not read"), resave);
  VLR_INPUT(header.packing == 0 || bits == 16 || bits == 32,
            text("damaged BMP: masks with ", bits, " bits a pixel"), "replace the picture");
  read_masks(bytes, header);
  return header;
}

/// RGB of each index; indices beyond the palette are black.
std::array<std::uint8_t, 768> read_palette(ByteReader const& bytes, BmpHeader const& header) {
  std::array<std::uint8_t, 768> palette{};
  auto const entry = header.size == 12 ? 3u : 4u;
  auto const full = 1u << header.bits;
  auto const count = header.colours == 0 ? full : std::min(header.colours, full);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bgr = 0;
    if (!bytes.number<3>(14 + header.size + i * entry, Order::little, bgr)) break;
    palette[3 * i] = static_cast<std::uint8_t>(bgr >> 16);
    palette[3 * i + 1] = static_cast<std::uint8_t>(bgr >> 8);
    palette[3 * i + 2] = static_cast<std::uint8_t>(bgr);
  }
  return palette;
}

/// One channel of a pixel, scaled to 0..255 and rounded; `absent` when the mask is empty.
std::uint8_t channel(std::uint32_t pixel, std::uint32_t mask, std::uint8_t absent) {
  if (mask == 0) return absent;
  auto const shift = std::countr_zero(mask);
  std::uint64_t const top = mask >> shift;
  std::uint64_t const value = (pixel & mask) >> shift;
  return static_cast<std::uint8_t>((value * 255 + top / 2) / top);
}

void unpack_row(std::uint8_t const* in, std::uint8_t* out, std::int32_t width,
                BmpHeader const& header, std::array<std::uint8_t, 768> const& palette) {
  for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(width); ++x) {
    if (header.bits <= 8) {
      auto const bit = x * header.bits;
      auto const shift = 8 - header.bits - bit % 8;
      auto const index = std::size_t(in[bit / 8]) >> shift & ((1u << header.bits) - 1);
      std::copy_n(&palette[3 * index], 3, out + std::size_t{3} * x);
    } else if (header.bits == 24) {
      for (std::size_t c = 0; c < 3; ++c)
        out[3 * std::size_t{x} + c] = in[3 * std::size_t{x} + 2 - c];
    } else {
      std::size_t const bytes = header.bits / 8;
      std::uint32_t pixel = 0;
      for (std::size_t i = bytes; i-- > 0;) pixel = pixel << 8 | in[x * bytes + i];
      auto const channels = header.masks[3] == 0 ? 3u : 4u;
      for (std::size_t c = 0; c < channels; ++c)
        out[std::size_t{x} * channels + c] = channel(pixel, header.masks[c], 0);
    }
  }
}

}  // namespace

Raster decode_bmp(std::string_view bytes, ImageSize size) {
  ByteReader const reader(bytes);
  auto const header = read_header(reader);
  auto const palette =
      header.bits <= 8 ? read_palette(reader, header) : std::array<std::uint8_t, 768>{};
  auto const height = static_cast<std::uint64_t>(size.height);
  auto const width = static_cast<std::uint64_t>(size.width);
  auto const stride = (width * header.bits + 31) / 32 * 4;
  // The last row may lack its padding.
  auto const needed = stride * (height - 1) + (width * header.bits + 7) / 8;
  require_data(header.data_at <= bytes.size() && needed <= bytes.size() - header.data_at);
  auto raster = make_raster(size, header.masks[3] == 0 ? 3 : 4);
  auto const* const data = reinterpret_cast<std::uint8_t const*>(bytes.data()) + header.data_at;
  auto const out_stride = width * static_cast<std::uint64_t>(raster.channels);
  for (std::uint64_t y = 0; y < height; ++y) {
    auto const from = header.from_top ? y : height - 1 - y;
    unpack_row(data + from * stride, &raster.pixels[y * out_stride], size.width, header, palette);
  }
  return raster;
}

}  // namespace vlrerank
