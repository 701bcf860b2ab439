// media/image.cpp -- from a source to the resized picture: which decoder, turning, blending, size.
#include "media/image.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "media/codecs.hpp"
#include "media/file.hpp"
#include "media/header.hpp"
#include "media/named.hpp"
#include "media/turn.hpp"

namespace vlrerank {
namespace {

constexpr double max_aspect_ratio = 200;

Raster decode(std::string_view bytes, RawHeader const& header) {
  switch (header.format) {
    case Format::png:
      return decode_png(bytes, header.stored);
    case Format::jpeg:
      return decode_jpeg(bytes, header.stored);
    case Format::webp:
      return decode_webp(bytes, header.stored);
    case Format::gif:
      return decode_gif(bytes, header.stored);
    case Format::bmp:
      return decode_bmp(bytes, header.stored);
    case Format::tiff:
      break;
  }
  return decode_tiff(bytes, header.stored);
}

/// Straight alpha over white, each channel rounded to nearest; in place, 4 bytes to 3.
void blend_over_white(Raster& raster) {
  if (raster.channels == 3) return;
  auto const pixels = raster.pixels.size() / 4;
  for (std::size_t i = 0; i < pixels; ++i) {
    std::uint32_t const alpha = raster.pixels[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      auto const sum = raster.pixels[4 * i + c] * alpha + 255 * (255 - alpha);
      raster.pixels[3 * i + c] = static_cast<std::uint8_t>((sum + 127) / 255);
    }
  }
  raster.pixels.resize(3 * pixels);
  raster.channels = 3;
}

ImageHeader public_header(RawHeader const& raw) {
  return {name_of(raw.format), turned(raw.stored, raw.orientation)};
}

Image decode_checked(std::string_view bytes, RawHeader const& header) {
  auto raster = decode(bytes, header);
  blend_over_white(raster);
  return turn({raster.size, std::move(raster.pixels)}, header.orientation);
}

}  // namespace

ImageHeader read_image_header(std::string_view bytes, ImageOptions const& options) {
  return public_header(read_raw_header(ByteReader(bytes), options));
}

ImageHeader probe_image(ImageSource const& source, ImageOptions const& options) {
  return name_errors(name_of(source), [&] {
    if (source.path.empty()) return read_image_header(read_source(source, options), options);
    auto const file = open_regular(source.path, options.root);
    return public_header(read_raw_header(ByteReader(file.handle.get(), file.size), options));
  });
}

Image decode_image(std::string_view bytes, ImageOptions const& options) {
  return decode_checked(bytes, read_raw_header(ByteReader(bytes), options));
}

ImageSize fit_size(ImageSize size, std::int32_t factor, double min_pixels, double max_pixels) {
  VLR_INPUT(size.height > 0 && size.width > 0,
            text("a picture of ", size.width, "x", size.height, " pixels"), "replace it");
  double const height = size.height;
  double const width = size.width;
  auto const ratio = std::max(height, width) / std::min(height, width);
  VLR_INPUT(
      ratio <= max_aspect_ratio,
      text("aspect ratio ", ratio, " (", size.width, "x", size.height, " pixels) exceeds 200"),
      "crop the picture or remove it from the row");
  // nearbyint rounds halves to even, as Python's round does.
  auto rows = std::max(1.0, std::nearbyint(height / factor)) * factor;
  auto columns = std::max(1.0, std::nearbyint(width / factor)) * factor;
  if (rows * columns > max_pixels) {
    auto const shrink = std::sqrt(height * width / max_pixels);
    rows = std::floor(height / shrink / factor) * factor;
    columns = std::floor(width / shrink / factor) * factor;
  } else if (rows * columns < min_pixels) {
    auto const grow = std::sqrt(min_pixels / (height * width));
    rows = std::ceil(height * grow / factor) * factor;
    columns = std::ceil(width * grow / factor) * factor;
  }
  VLR_INPUT(rows > 0 && columns > 0,
            text(size.width, "x", size.height, " pixels: too narrow for the limit of ", max_pixels,
                 " pixels"),
            "raise --image-max-tokens, or crop the picture");
  return {static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns)};
}

ImageSize target_size(ImageSize size, ImageOptions const& options) {
  constexpr std::int32_t factor = 32;
  auto const token_pixels = double{factor} * factor;
  return fit_size(size, factor, options.min_tokens * token_pixels,
                  options.max_tokens * token_pixels);
}

Grid grid_of(ImageSize resized) {
  return {1, resized.height / 16, resized.width / 16};
}

Image decode_source(ImageSource const& source, ImageOptions const& options) {
  return name_errors(name_of(source), [&] {
    if (source.path.empty()) return decode_image(read_source(source, options), options);
    auto const file = open_regular(source.path, options.root);
    auto const header = read_raw_header(ByteReader(file.handle.get(), file.size), options);
    return decode_checked(read_all(file, source.path), header);
  });
}

LoadedImage load_image(ImageSource const& source, ImageOptions const& options) {
  return name_errors(name_of(source), [&] {
    LoadedImage loaded;
    auto const finish = [&](std::string_view bytes, RawHeader const& header) {
      loaded.source_size = turned(header.stored, header.orientation);
      auto const target = target_size(loaded.source_size, options);
      loaded.resized = resize_bicubic(decode_checked(bytes, header), target);
      loaded.grid = grid_of(target);
    };
    if (source.path.empty()) {
      auto const bytes = read_source(source, options);
      finish(bytes, read_raw_header(ByteReader(bytes), options));
    } else {  // the header first: what is no picture is not loaded
      auto const file = open_regular(source.path, options.root);
      auto const header = read_raw_header(ByteReader(file.handle.get(), file.size), options);
      finish(read_all(file, source.path), header);
    }
    return loaded;
  });
}

}  // namespace vlrerank
