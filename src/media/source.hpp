// media/source.hpp -- where the bytes of a picture or a video come from.
#pragma once

#include <string>
#include <vector>

namespace vlrerank {

/// A picture: a file, or the bytes of one (base64, data: URI or {"bytes"} in the row).
struct ImageSource {
  std::string path;  ///< absolute or relative to the working directory; empty when `bytes` holds it
  std::string bytes;  ///< an encoded image file
  friend bool operator==(ImageSource const&, ImageSource const&) = default;
};

/// A video: a file, or its frames as pictures.
struct VideoSource {
  std::string path;
  std::vector<ImageSource> frames;
  double fps = 0;  ///< 0: the option's or the reference script's default
  friend bool operator==(VideoSource const&, VideoSource const&) = default;
};

}  // namespace vlrerank
