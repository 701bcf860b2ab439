// media/tiff.cpp -- TIFF through libtiff's RGBA interface, from memory: first page, any layout and
// compression that the installed libtiff has; 16-bit grey is scaled here, where libtiff would cut.
// This is the only file that includes tiffio.h.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

/// A file in memory and the last complaint about it.
struct Memory {
  std::string_view bytes;
  std::size_t at = 0;
  std::array<char, 200> reason{};
};

tmsize_t on_read(thandle_t handle, void* out, tmsize_t count) {
  auto& memory = *static_cast<Memory*>(handle);
  auto const left = memory.bytes.size() - std::min(memory.at, memory.bytes.size());
  auto const taken = std::min(left, static_cast<std::size_t>(std::max<tmsize_t>(count, 0)));
  if (taken > 0) std::memcpy(out, memory.bytes.data() + memory.at, taken);
  memory.at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t on_write(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  auto& memory = *static_cast<Memory*>(handle);
  if (whence == SEEK_CUR) offset += memory.at;
  if (whence == SEEK_END) offset += memory.bytes.size();
  memory.at = offset;
  return offset;
}

int on_close(thandle_t) {
  return 0;
}

toff_t on_size(thandle_t handle) {
  return static_cast<Memory*>(handle)->bytes.size();
}

int on_message(TIFF*, void* memory, char const*, char const* format, va_list values) {
  auto& reason = static_cast<Memory*>(memory)->reason;
  if (reason[0] == '\0') std::vsnprintf(reason.data(), reason.size(), format, values);
  return 1;
}

int on_warning(TIFF*, void*, char const*, char const*, va_list) {
  return 1;
}

void close_tiff(TIFF* tiff) noexcept {
  TIFFClose(tiff);
}
using Tiff = Handle<TIFF*, close_tiff>;
void free_options(TIFFOpenOptions* options) noexcept {
  TIFFOpenOptionsFree(options);
}
using OpenOptions = Handle<TIFFOpenOptions*, free_options>;

[[noreturn]] void fail(Memory const& memory) {
  auto const* const reason = memory.reason[0] == '\0' ? "cannot be decoded" : memory.reason.data();
  throw Error(Exit::input, text("damaged or unusual TIFF: ", reason),
              "replace the picture, or save it as PNG", VLR_WHERE);
}

Tiff open_tiff(Memory& memory, ImageSize size) {
  auto const pixels = std::int64_t{size.height} * size.width;
  OpenOptions const options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                      static_cast<tmsize_t>(pixels * 16 + (std::int64_t{1} << 24)));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_message, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, nullptr);
  auto* const tiff = TIFFClientOpenExt("picture", "rm", &memory, on_read, on_write, on_seek,
                                       on_close, on_size, nullptr, nullptr, options.get());
  if (tiff == nullptr) fail(memory);
  return Tiff(tiff);
}

std::uint16_t tag(TIFF* tiff, std::uint32_t name) {
  std::uint16_t value = 0;
  TIFFGetFieldDefaulted(tiff, name, &value);
  return value;
}

bool is_deep_grey(TIFF* tiff) {
  auto const photometric = tag(tiff, TIFFTAG_PHOTOMETRIC);
  auto const format = tag(tiff, TIFFTAG_SAMPLEFORMAT);
  return tag(tiff, TIFFTAG_BITSPERSAMPLE) == 16 && tag(tiff, TIFFTAG_SAMPLESPERPIXEL) == 1 &&
         (photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE) &&
         format == SAMPLEFORMAT_UINT && TIFFIsTiled(tiff) == 0;
}

Raster read_deep_grey(TIFF* tiff, Memory const& memory, ImageSize size) {
  auto raster = make_raster(size, 3);
  bool const inverted = tag(tiff, TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_MINISWHITE;
  auto const width = static_cast<std::size_t>(size.width);
  if (TIFFScanlineSize64(tiff) != width * 2) fail(memory);
  std::vector<std::uint16_t> line(width);
  auto* out = raster.pixels.data();
  for (std::int32_t y = 0; y < size.height; ++y) {
    if (TIFFReadScanline(tiff, line.data(), static_cast<std::uint32_t>(y), 0) < 0) fail(memory);
    for (auto const sample : line) {
      auto const value = static_cast<std::uint8_t>((sample * 255u + 32767u) / 65535u);
      out = std::fill_n(out, 3, inverted ? static_cast<std::uint8_t>(255 - value) : value);
    }
  }
  return raster;
}

void free_image(TIFFRGBAImage* image) noexcept {
  TIFFRGBAImageEnd(image);
}

/// Whether libtiff leaves straight alpha as it is: it multiplies colours by it, but not grey.
bool keeps_straight_alpha(TIFFRGBAImage const& image) {
  return image.alpha == EXTRASAMPLE_UNASSALPHA && (image.photometric == PHOTOMETRIC_MINISBLACK ||
                                                   image.photometric == PHOTOMETRIC_MINISWHITE);
}

/// White shows where alpha leaves it.
Raster over_white(std::vector<std::uint32_t> const& pixels, ImageSize size, bool straight) {
  auto raster = make_raster(size, 3);
  auto* out = raster.pixels.data();
  for (auto const pixel : pixels) {
    auto const alpha = TIFFGetA(pixel);
    for (auto const value : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)}) {
      auto const covered = straight ? (value * alpha + 127) / 255 : value;
      *out++ = static_cast<std::uint8_t>(std::min(255u, covered + 255 - alpha));
    }
  }
  return raster;
}

}  // namespace

Raster decode_tiff(std::string_view bytes, ImageSize size) {
  Memory memory{bytes};
  auto const tiff = open_tiff(memory, size);
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  if (width != static_cast<std::uint32_t>(size.width) ||
      height != static_cast<std::uint32_t>(size.height))
    fail(memory);
  if (is_deep_grey(tiff.get())) return read_deep_grey(tiff.get(), memory, size);

  TIFFRGBAImage image;
  std::array<char, 1024> reason{};
  if (TIFFRGBAImageBegin(&image, tiff.get(), /*stop=*/1, reason.data()) == 0)
    throw Error(Exit::input, text("unusual TIFF: ", reason.data()), "save it as PNG", VLR_WHERE);
  Handle<TIFFRGBAImage*, free_image> const owner(&image);
  image.req_orientation = image.orientation;  // as stored: turning is media/image.cpp's business
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * height);
  if (TIFFRGBAImageGet(&image, pixels.data(), width, height) == 0) fail(memory);
  return over_white(pixels, size, keeps_straight_alpha(image));
}

}  // namespace vlrerank
