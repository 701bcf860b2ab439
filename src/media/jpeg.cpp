// media/jpeg.cpp -- JPEG through libjpeg-turbo with its defaults (exact integer DCT, smooth
// chroma), which are Pillow's too. This is the only file that includes jpeglib.h.
#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

// jpeglib.h after cstdio.
#include <jerror.h>
#include <jpeglib.h>

#include "core/error.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

/// Everything that lives across libjpeg's long jumps; none of it is a local of the jumping frame.
struct JpegJob {
  JpegJob() = default;
  ~JpegJob() { jpeg_destroy_decompress(&decoder); }
  JpegJob(JpegJob const&) = delete;
  JpegJob& operator=(JpegJob const&) = delete;

  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> reason{};
};

[[noreturn]] void on_error(j_common_ptr decoder) {
  auto& job = *static_cast<JpegJob*>(decoder->client_data);
  decoder->err->format_message(decoder, job.reason.data());
  std::longjmp(job.escape, 1);
}

/// Damage within the data is shown as it decodes, like other viewers do; a file that ends too early
/// is refused, else half of the picture would be grey.
void on_message(j_common_ptr decoder, int level) {
  if (level < 0 && decoder->err->msg_code == JWRN_JPEG_EOF) on_error(decoder);
}

void on_text(j_common_ptr) {}

/// A small progressive file can hold thousands of scans over a large picture.
void on_progress(j_common_ptr decoder) {
  constexpr int max_scans = 500;
  auto& job = *static_cast<JpegJob*>(decoder->client_data);
  if (job.decoder.input_scan_number <= max_scans) return;
  std::snprintf(job.reason.data(), job.reason.size(), "more than %d scans", max_scans);
  std::longjmp(job.escape, 1);
}

bool read_header(JpegJob& job, std::string_view bytes) {
  if (setjmp(job.escape) != 0) return false;
  jpeg_create_decompress(&job.decoder);
  job.decoder.progress = &job.progress;
  jpeg_mem_src(&job.decoder, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size());
  jpeg_read_header(&job.decoder, TRUE);
  job.decoder.out_color_space = job.decoder.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&job.decoder);
  return true;
}

bool read_rows(JpegJob& job, std::uint8_t* out, std::size_t stride) {
  if (setjmp(job.escape) != 0) return false;
  while (job.decoder.output_scanline < job.decoder.output_height) {
    JSAMPROW row = out + job.decoder.output_scanline * stride;
    jpeg_read_scanlines(&job.decoder, &row, 1);
  }
  return true;
}

/// CMYK as Adobe stores it, inverted (255 = no ink), to RGB; in place, 4 bytes to 3.
void from_inverted_cmyk(Raster& raster) {
  auto const pixels = raster.pixels.size() / 4;
  for (std::size_t i = 0; i < pixels; ++i) {
    int const black = raster.pixels[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      int const ink = 255 - raster.pixels[4 * i + c];
      raster.pixels[3 * i + c] = static_cast<std::uint8_t>(black - (ink * black + 127) / 255);
    }
  }
  raster.pixels.resize(pixels * 3);
  raster.channels = 3;
}

}  // namespace

Raster decode_jpeg(std::string_view bytes, ImageSize size) {
  JpegJob job;
  job.decoder.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = on_error;
  job.errors.emit_message = on_message;
  job.errors.output_message = on_text;
  job.progress.progress_monitor = on_progress;
  job.decoder.client_data = &job;
  VLR_INPUT(read_header(job, bytes), text("damaged JPEG: ", job.reason.data()),
            "replace the picture");
  VLR_INPUT(job.decoder.output_height == static_cast<JDIMENSION>(size.height) &&
                job.decoder.output_width == static_cast<JDIMENSION>(size.width),
            "damaged JPEG: it has two frame headers that differ", "replace the picture");
  auto raster = make_raster(size, job.decoder.output_components);
  auto const stride = static_cast<std::size_t>(size.width * raster.channels);
  VLR_INPUT(read_rows(job, raster.pixels.data(), stride), text("damaged JPEG: ", job.reason.data()),
            "replace the picture");
  if (raster.channels == 4) from_inverted_cmyk(raster);
  return raster;
}

}  // namespace vlrerank
