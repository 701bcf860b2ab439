// prepare/media_cache.hpp -- pictures decoded and resized, the last used ones kept: data sets use
// the same picture in many rows.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/encode.hpp"
#include "media/image.hpp"
#include "media/video.hpp"

namespace vlrerank {

/// A media file as it was when it was read: what tells later that a set is out of date.
struct MediaStamp {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  friend bool operator==(MediaStamp const&, MediaStamp const&) = default;
  friend auto operator<=>(MediaStamp const&, MediaStamp const&) = default;
};
/// bytes = 0 and modified = 0 when there is no such file.
MediaStamp stamp_of(std::string const& path);

/// A picture or a video ready for a shard.
struct LoadedMedium {
  MediumGrid grid;
  std::vector<std::uint8_t> pixels;  ///< u8 RGB [t' * H * W * 3]
  std::vector<MediaStamp> stamps;    ///< of the files behind it; none when the row held the bytes
};

class MediaCache {
 public:
  /// @param bytes  of pixels that are kept at most
  /// Root, EXIF and pixel limit of the pictures hold for videos too.
  MediaCache(ImageOptions options, std::size_t bytes, VideoOptions video = {});
  /// Throws Error (exit 3) naming the path when the source is unusable.
  std::shared_ptr<LoadedMedium const> load(Part const& part);

 private:
  std::shared_ptr<LoadedMedium const> keep(std::string key, LoadedMedium medium);

  struct Entry {
    std::string key;
    std::shared_ptr<LoadedMedium const> medium;
  };
  LoadedMedium read(Part const& part) const;

  ImageOptions options_;
  VideoOptions video_;
  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace vlrerank
