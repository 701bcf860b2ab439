// media/video_file.hpp -- what media/video.cpp needs to know and to have from a video file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "media/file.hpp"
#include "media/video.hpp"

namespace vlrerank {

struct VideoFacts {
  ImageSize size;           ///< upright
  std::int32_t frames = 0;  ///< at least 1
  double fps = 0;           ///< average, above 0
};

/// Reads the facts. Throws Error (exit 3).
VideoFacts read_video_facts(OpenFile const& file, VideoOptions const& options);

/// Decodes the frames whose numbers are listed (ascending, repetitions allowed) and calls
/// `take(frame)` for each in order.
void decode_video(OpenFile const& file, VideoOptions const& options,
                  std::vector<std::int32_t> const& wanted,
                  std::function<void(Image const&)> const& take);

}  // namespace vlrerank
