// tests/media/encoders.cpp -- the libraries' own writers; what they cannot write is put together
// by hand.
#include "media/encoders.hpp"

#include <gif_lib.h>
#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// jpeglib.h after cstdio.
#include <jpeglib.h>

namespace vlrerank {
namespace {

void append_png(png_structp png, png_bytep data, png_size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(data), count);
}
void flush_png(png_structp) {}

int append_gif(GifFileType* gif, GifByteType const* data, int count) {
  static_cast<std::string*>(gif->UserData)
      ->append(reinterpret_cast<char const*>(data), static_cast<std::size_t>(count));
  return count;
}

void put(std::string& out, std::uint32_t value, int bytes, bool big_endian = false) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * (big_endian ? bytes - 1 - i : i)));
}

}  // namespace

std::string encode_png(PngPicture const& picture) {
  std::string out;
  auto* png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  auto* info = png_create_info_struct(png);
  auto const height = static_cast<png_uint_32>(picture.size.height);
  png_set_write_fn(png, &out, append_png, flush_png);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.size.width), height, picture.bits,
               picture.colour_type, picture.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  for (std::size_t i = 0; i + 2 < picture.palette.size(); i += 3)
    palette.push_back({picture.palette[i], picture.palette[i + 1], picture.palette[i + 2]});
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_color_16 colour{};
  if (picture.transparent.size() == 1) colour.gray = picture.transparent[0];
  if (picture.transparent.size() == 3) {
    colour.red = picture.transparent[0];
    colour.green = picture.transparent[1];
    colour.blue = picture.transparent[2];
  }
  if (!picture.transparent.empty()) png_set_tRNS(png, info, nullptr, 0, &colour);
  if (!picture.palette_alpha.empty())
    png_set_tRNS(png, info, picture.palette_alpha.data(),
                 static_cast<int>(picture.palette_alpha.size()), nullptr);
  std::string exif = picture.exif;
  if (!exif.empty())
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()),
                   reinterpret_cast<png_bytep>(exif.data()));
  std::string words = picture.text;
  std::string key = "Comment";
  png_text text{};
  text.compression = PNG_TEXT_COMPRESSION_zTXt;
  text.key = key.data();
  text.text = words.data();
  text.text_length = words.size();
  if (!words.empty()) png_set_text(png, info, &text, 1);
  png_write_info(png, info);
  std::vector<std::uint8_t> rows = picture.rows;
  std::vector<png_bytep> pointers;
  for (png_uint_32 y = 0; y < height; ++y)
    pointers.push_back(rows.data() + y * png_get_rowbytes(png, info));
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string encode_jpeg(ImageSize size, JpegSpace space, std::vector<std::uint8_t> const& samples,
                        bool progressive, std::string const& exif) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* data = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&encoder, &data, &count);
  encoder.image_width = static_cast<JDIMENSION>(size.width);
  encoder.image_height = static_cast<JDIMENSION>(size.height);
  encoder.input_components = space == JpegSpace::grey ? 1 : space == JpegSpace::rgb ? 3 : 4;
  encoder.in_color_space = space == JpegSpace::grey  ? JCS_GRAYSCALE
                           : space == JpegSpace::rgb ? JCS_RGB
                                                     : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  if (space == JpegSpace::ycck) jpeg_set_colorspace(&encoder, JCS_YCCK);
  jpeg_set_quality(&encoder, 95, TRUE);
  if (progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  auto const marker = std::string("Exif\0\0", 6) + exif;
  if (!exif.empty())
    jpeg_write_marker(&encoder, JPEG_APP0 + 1, reinterpret_cast<JOCTET const*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  std::vector<std::uint8_t> rows = samples;
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = rows.data() + std::size_t{encoder.next_scanline} * encoder.image_width *
                                     static_cast<std::size_t>(encoder.input_components);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string out(reinterpret_cast<char*>(data), count);
  std::free(data);
  return out;
}

std::string encode_webp(ImageSize size, std::vector<std::uint8_t> const& samples) {
  std::uint8_t* data = nullptr;
  auto const count =
      WebPEncodeLosslessRGBA(samples.data(), size.width, size.height, size.width * 4, &data);
  std::string out(reinterpret_cast<char*>(data), count);
  WebPFree(data);
  return out;
}

std::string encode_gif(ImageSize canvas, std::vector<std::uint8_t> const& colours,
                       std::vector<GifFrame> const& frames) {
  std::string out;
  int error = 0;
  auto* gif = EGifOpen(&out, append_gif, &error);
  std::vector<GifColorType> table;
  for (std::size_t i = 0; i + 2 < colours.size(); i += 3)
    table.push_back({colours[i], colours[i + 1], colours[i + 2]});
  auto* map = GifMakeMapObject(static_cast<int>(table.size()), table.data());
  EGifSetGifVersion(gif, true);
  EGifPutScreenDesc(gif, canvas.width, canvas.height, 8, 0, map);
  for (auto const& frame : frames) {
    GraphicsControlBlock control{DISPOSAL_UNSPECIFIED, false, 10, frame.transparent};
    std::array<GifByteType, 4> block{};
    EGifGCBToExtension(&control, block.data());
    EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, 4, block.data());
    EGifPutImageDesc(gif, frame.left, frame.top, frame.size.width, frame.size.height,
                     frame.interlaced, nullptr);
    std::vector<std::uint8_t> indices = frame.indices;
    static constexpr std::array<std::array<int, 2>, 4> passes = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    for (auto const [first, step] : passes) {
      for (int y = frame.interlaced ? first : 0; y < frame.size.height;
           y += frame.interlaced ? step : 1)
        EGifPutLine(gif, indices.data() + y * frame.size.width, frame.size.width);
      if (!frame.interlaced) break;
    }
  }
  EGifCloseFile(gif, &error);
  GifFreeMapObject(map);
  return out;
}

std::string encode_bmp(ImageSize size, int bits, std::vector<std::uint8_t> const& rows,
                       std::vector<std::uint8_t> const& palette_bgrx,
                       std::vector<std::uint32_t> const& masks, bool from_top) {
  auto const header = masks.empty() ? 40u : 108u;
  auto const data_at = 14 + header + static_cast<std::uint32_t>(palette_bgrx.size());
  std::string out = "BM";
  put(out, data_at + static_cast<std::uint32_t>(rows.size()), 4);
  put(out, 0, 4);
  put(out, data_at, 4);
  put(out, header, 4);
  put(out, static_cast<std::uint32_t>(size.width), 4);
  put(out, static_cast<std::uint32_t>(from_top ? -size.height : size.height), 4);
  put(out, 1, 2);
  put(out, static_cast<std::uint32_t>(bits), 2);
  put(out, masks.empty() ? 0 : 3, 4);
  put(out, static_cast<std::uint32_t>(rows.size()), 4);
  put(out, 2835, 4);
  put(out, 2835, 4);
  put(out, static_cast<std::uint32_t>(palette_bgrx.size() / 4), 4);
  put(out, 0, 4);
  for (auto const mask : masks) put(out, mask, 4);
  out.resize(14 + header);
  out.append(palette_bgrx.begin(), palette_bgrx.end());
  out.append(rows.begin(), rows.end());
  return out;
}

std::string encode_tiff(TiffPicture const& picture) {
  // libtiff writes to files only without many callbacks; a temporary file is simplest here.
  std::string name = "/tmp/vlrerank-tiff-XXXXXX";
  int const file = mkstemp(name.data());
  auto* tiff = TIFFFdOpen(file, name.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, picture.size.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, picture.size.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, picture.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, picture.samples);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, picture.photometric);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, picture.compression);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, picture.orientation);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 3);
  auto extra = static_cast<std::uint16_t>(picture.extra);
  if (picture.extra >= 0) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra);
  auto const stride = picture.rows.size() / static_cast<std::size_t>(picture.size.height);
  std::vector<std::uint8_t> rows = picture.rows;
  for (int y = 0; y < picture.size.height; ++y)
    TIFFWriteScanline(tiff, rows.data() + static_cast<std::size_t>(y) * stride,
                      static_cast<std::uint32_t>(y), 0);
  TIFFClose(tiff);
  std::string out;
  auto* back = std::fopen(name.c_str(), "rb");
  for (int c = std::fgetc(back); c != EOF; c = std::fgetc(back)) out += static_cast<char>(c);
  std::fclose(back);
  std::remove(name.c_str());
  return out;
}

std::string exif_block(int orientation, bool big_endian) {
  std::string out = big_endian ? "MM" : "II";
  put(out, 42, 2, big_endian);
  put(out, 8, 4, big_endian);
  put(out, 1, 2, big_endian);
  put(out, 274, 2, big_endian);
  put(out, 3, 2, big_endian);
  put(out, 1, 4, big_endian);
  put(out, static_cast<std::uint32_t>(orientation), 2, big_endian);
  put(out, 0, 2, big_endian);
  put(out, 0, 4, big_endian);
  return out;
}

}  // namespace vlrerank
