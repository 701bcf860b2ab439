// media/png.cpp -- PNG through libpng: palette, tRNS, every depth, interlaced.
// This is the only file that includes png.h.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "core/error.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

/// Everything that lives across libpng's long jumps; none of it is a local of the jumping frame.
struct PngJob {
  explicit PngJob(std::string_view file) : rest(file) {}
  ~PngJob() { png_destroy_read_struct(&png, &info, nullptr); }
  PngJob(PngJob const&) = delete;
  PngJob& operator=(PngJob const&) = delete;

  std::string_view rest;  ///< bytes not read yet
  std::string reason;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;
};

[[noreturn]] void on_error(png_structp png, png_const_charp reason) {
  static_cast<PngJob*>(png_get_error_ptr(png))->reason = reason;
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, png_size_t count) {
  auto& rest = static_cast<PngJob*>(png_get_io_ptr(png))->rest;
  if (count > rest.size()) png_error(png, "the file is cut");
  std::memcpy(out, rest.data(), count);
  rest.remove_prefix(count);
}

/// Skips all that changes no pixel: texts of any length, colour profiles, EXIF.
void skip_side_chunks(png_structp png) {
  static constexpr png_byte names[] =
      "tEXt\0zTXt\0iTXt\0iCCP\0eXIf\0hIST\0pHYs\0sPLT\0tIME\0bKGD\0cHRM\0gAMA\0sBIT\0sCAL\0sRGB\0"
      "oFFs\0pCAL";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof(names) / 5);
  png_set_chunk_malloc_max(png, 0);  // nothing is stored, so no length is too much
}

bool read_header(PngJob& job) {
  if (setjmp(png_jmpbuf(job.png)) != 0) return false;
  png_set_read_fn(job.png, &job, on_read);
  png_set_user_limits(job.png, 0x7fffffff, 0x7fffffff);
  skip_side_chunks(job.png);
  png_read_info(job.png, job.info);
  png_set_expand(job.png);  // palette, tRNS and 1, 2, 4 bits become 8-bit samples with alpha
  png_set_scale_16(job.png);
  png_set_gray_to_rgb(job.png);
  png_set_interlace_handling(job.png);
  png_read_update_info(job.png, job.info);
  return true;
}

bool read_rows(PngJob& job) {
  if (setjmp(png_jmpbuf(job.png)) != 0) return false;
  png_read_image(job.png, job.rows.data());
  return true;
}

}  // namespace

Raster decode_png(std::string_view bytes, ImageSize size) {
  PngJob job(bytes);
  job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
  job.info = job.png == nullptr ? nullptr : png_create_info_struct(job.png);
  VLR_REQUIRE(job.info != nullptr, "libpng gave no reader", "free some memory");
  VLR_INPUT(read_header(job), text("damaged PNG: ", job.reason), "replace the picture");
  auto const stride = png_get_rowbytes(job.png, job.info);
  auto raster = make_raster(size, png_get_channels(job.png, job.info));
  VLR_INPUT(png_get_image_height(job.png, job.info) == static_cast<png_uint_32>(size.height) &&
                stride * static_cast<std::size_t>(size.height) == raster.pixels.size(),
            "damaged PNG: its size changes on the way", "replace the picture");
  for (std::size_t at = 0; at < raster.pixels.size(); at += stride)
    job.rows.push_back(&raster.pixels[at]);
  VLR_INPUT(read_rows(job), text("damaged PNG: ", job.reason), "replace the picture");
  return raster;
}

}  // namespace vlrerank
