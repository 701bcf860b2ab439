// media/webp.cpp -- WebP through libwebp; of an animation its first frame on the canvas.
// This is the only file that includes libwebp's headers.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "media/codecs.hpp"

namespace vlrerank {
namespace {

void free_animation(WebPAnimDecoder* decoder) noexcept {
  WebPAnimDecoderDelete(decoder);
}
using Animation = Handle<WebPAnimDecoder*, free_animation>;

Raster first_frame(WebPData const& data, ImageSize size) {
  WebPAnimDecoderOptions options;
  VLR_REQUIRE(WebPAnimDecoderOptionsInit(&options) != 0, "libwebp has another version",
              "build against the installed libwebp");
  options.color_mode = MODE_RGBA;
  Animation const animation(WebPAnimDecoderNew(&data, &options));
  WebPAnimInfo info{};
  std::uint8_t* pixels = nullptr;
  int milliseconds = 0;
  VLR_INPUT(animation.get() != nullptr && WebPAnimDecoderGetInfo(animation.get(), &info) != 0 &&
                info.canvas_width == static_cast<std::uint32_t>(size.width) &&
                info.canvas_height == static_cast<std::uint32_t>(size.height) &&
                WebPAnimDecoderGetNext(animation.get(), &pixels, &milliseconds) != 0,
            "damaged WebP: its first frame cannot be decoded", "replace the picture");
  auto raster = make_raster(size, 4);
  std::copy_n(pixels, raster.pixels.size(), raster.pixels.begin());
  return raster;
}

}  // namespace

Raster decode_webp(std::string_view bytes, ImageSize size) {
  auto const* const data = reinterpret_cast<std::uint8_t const*>(bytes.data());
  WebPBitstreamFeatures features;
  VLR_INPUT(WebPGetFeatures(data, bytes.size(), &features) == VP8_STATUS_OK,
            "damaged WebP: its header cannot be read", "replace the picture");
  VLR_INPUT(features.width == size.width && features.height == size.height,
            "damaged WebP: the sizes in its headers differ", "replace the picture");
  if (features.has_animation != 0) return first_frame({data, bytes.size()}, size);
  auto raster = make_raster(size, features.has_alpha != 0 ? 4 : 3);
  auto const decode = features.has_alpha != 0 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  VLR_INPUT(decode(data, bytes.size(), raster.pixels.data(), raster.pixels.size(),
                   size.width * raster.channels) != nullptr,
            "damaged WebP: the data are cut or wrong", "replace the picture");
  return raster;
}

}  // namespace vlrerank
