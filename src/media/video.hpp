// media/video.hpp -- a video as pairs of resized frames with their times, from a file or a list of
// pictures, by the reference script's rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/image.hpp"
#include "media/source.hpp"

namespace vlrerank {

struct VideoOptions {
  double fps = 1;                 ///< frames a second taken from a file (VideoSource::fps wins)
  double list_fps = 2;            ///< frames a second of a list, for its times (likewise)
  std::int32_t min_frames = 4;    ///< taken from a file that has them
  std::int32_t max_frames = 64;   ///< more are thinned out evenly
  std::int64_t total_pixels = 0;  ///< of all frames; 0: the script's, 7,864,320 for a list of
                                  ///< frames and 117,964,800 for a file
  Exif exif = Exif::apply;        ///< of the pictures of a list
  std::int64_t max_pixels = 178'956'970;  ///< header limit of a frame before decoding
  std::string root;                       ///< not empty: paths must stay below it
};

/// What a video will be, known without decoding it.
struct VideoShape {
  Grid grid;                    ///< t frame pairs
  std::vector<double> seconds;  ///< of each pair: the mean of its two frames' times
  ImageSize resized;
};

struct LoadedVideo {
  Grid grid;
  std::vector<double> seconds;
  ImageSize resized;
  std::vector<std::uint8_t> frames;  ///< [2 t, height, width, 3], what patchify() takes
};

/// Reads headers only (of a file without a frame count: its packets, undecoded).
/// Throws Error (exit 3) naming the path: not a video, no frames, frames of different shapes.
VideoShape probe_video(VideoSource const& source, VideoOptions const& options);
LoadedVideo load_video(VideoSource const& source, VideoOptions const& options);

/// The size of frames: 128 to 768 tokens each, and `total_pixels` over all `frames`.
ImageSize frame_size(ImageSize size, std::int32_t frames, double total_pixels);

/// torchvision's bicubic resize of 8-bit frames: antialiased in float32 with fused multiply-adds,
/// clipped and rounded (halves to even) once at the end. Within 2 levels of resize_bicubic.
Image resize_frame(Image const& frame, ImageSize size);

}  // namespace vlrerank
