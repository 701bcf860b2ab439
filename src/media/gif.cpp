// media/gif.cpp -- the first frame of a GIF through giflib, placed on its canvas. What the frame
// does not cover is transparent if the frame has a transparent colour, else the background colour.
// This is the only file that includes gif_lib.h.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

constexpr char const* replace_picture = "replace the picture";

void free_gif(GifFileType* gif) noexcept {
  int ignored = 0;
  DGifCloseFile(gif, &ignored);
}
using Gif = Handle<GifFileType*, free_gif>;

int on_read(GifFileType* gif, GifByteType* out, int count) {
  auto& rest = *static_cast<std::string_view*>(gif->UserData);
  auto const taken = std::min(rest.size(), static_cast<std::size_t>(std::max(count, 0)));
  std::memcpy(out, rest.data(), taken);
  rest.remove_prefix(taken);
  return static_cast<int>(taken);
}

[[noreturn]] void fail(int error) {
  auto const* const reason = GifErrorString(error);
  throw Error(Exit::input, text("damaged GIF: ", reason == nullptr ? "the data are cut" : reason),
              replace_picture, VLR_WHERE);
}

void check(GifFileType const* gif, int result) {
  if (result == GIF_ERROR) fail(gif->Error);
}

/// Reads on to the first frame's descriptor. Returns its transparent colour, -1 when none.
int find_frame(GifFileType* gif) {
  int transparent = -1;
  while (true) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    check(gif, DGifGetRecordType(gif, &record));
    if (record == IMAGE_DESC_RECORD_TYPE) break;
    VLR_INPUT(record == EXTENSION_RECORD_TYPE, "damaged GIF: it holds no frame", replace_picture);
    int code = 0;
    GifByteType* block = nullptr;
    check(gif, DGifGetExtension(gif, &code, &block));
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        transparent = control.TransparentColor;
      check(gif, DGifGetExtensionNext(gif, &block));
    }
  }
  check(gif, DGifGetImageDesc(gif));
  return transparent;
}

/// RGBA of each index. Without any colour table the indices are shades of grey.
std::array<std::uint8_t, 1024> colours_of(GifFileType const* gif, int transparent) {
  auto const* const map = gif->Image.ColorMap != nullptr ? gif->Image.ColorMap : gif->SColorMap;
  std::array<std::uint8_t, 1024> colours{};
  for (int i = 0; i < 256; ++i) {
    GifColorType colour{};
    auto const shade = static_cast<GifByteType>(i);
    if (map == nullptr) colour = {shade, shade, shade};
    if (map != nullptr && i < map->ColorCount) colour = map->Colors[i];
    auto* const out = &colours[static_cast<std::size_t>(4 * i)];
    out[0] = colour.Red;
    out[1] = colour.Green;
    out[2] = colour.Blue;
    out[3] = i == transparent ? 0 : 255;
  }
  return colours;
}

/// Rows in the order in which the file has them: interlaced, every 8th from 0 and 4, every 4th
/// from 2, every 2nd from 1.
std::vector<std::int32_t> row_order(std::int32_t rows, bool interlaced) {
  static constexpr std::array<std::array<std::int32_t, 2>, 4> passes = {
      {{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  std::vector<std::int32_t> order;
  for (auto const [first, step] : passes)
    for (std::int32_t y = interlaced ? first : 0; y < rows; y += interlaced ? step : 1) {
      if (static_cast<std::int32_t>(order.size()) == rows) return order;
      order.push_back(y);
    }
  return order;
}

}  // namespace

Raster decode_gif(std::string_view bytes, ImageSize size) {
  int error = 0;
  Gif const owner(DGifOpen(&bytes, on_read, &error));
  auto* const gif = owner.get();
  if (gif == nullptr) fail(error);
  auto const transparent = find_frame(gif);
  auto const& frame = gif->Image;
  VLR_INPUT(frame.Width > 0 && frame.Height > 0 && frame.Left >= 0 && frame.Top >= 0 &&
                frame.Left + frame.Width <= size.width && frame.Top + frame.Height <= size.height,
            "damaged GIF: its first frame is empty or lies off the canvas", replace_picture);
  auto const colours = colours_of(gif, transparent);
  auto raster = make_raster(size, 4);
  auto const background = std::size_t{4} * static_cast<std::uint8_t>(gif->SBackGroundColor);
  for (std::size_t at = 0; transparent < 0 && at < raster.pixels.size(); at += 4)
    std::memcpy(&raster.pixels[at], &colours[background], 4);
  std::vector<GifPixelType> line(static_cast<std::size_t>(frame.Width));
  for (auto const y : row_order(frame.Height, frame.Interlace)) {
    check(gif, DGifGetLine(gif, line.data(), frame.Width));
    auto const start = std::size_t(frame.Top + y) * std::size_t(size.width);
    auto* out = &raster.pixels[4 * (start + static_cast<std::size_t>(frame.Left))];
    for (auto const index : line) {
      std::memcpy(out, &colours[std::size_t{4} * index], 4);
      out += 4;
    }
  }
  return raster;
}

}  // namespace vlrerank
