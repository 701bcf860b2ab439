// prepare/media_cache.cpp -- least recently used pictures go first when the bytes run out.
#include "prepare/media_cache.hpp"

#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.hpp"
#include "io/files.hpp"

namespace vlrerank {
namespace {

/// Names the source: its path, or the hash of the bytes it carries.
std::string key_of(ImageSource const& source) {
  if (!source.path.empty()) return source.path;
  auto const hash = XXH3_128bits(source.bytes.data(), source.bytes.size());
  return text("bytes:", source.bytes.size(), ":", hex(hash.high64), hex(hash.low64));
}

std::string key_of(VideoSource const& source) {
  auto key = text("video:", source.fps, ":", source.path);
  for (auto const& frame : source.frames) key += text("\n", key_of(frame));
  return key;
}

void add_stamp(std::vector<MediaStamp>& stamps, std::string const& path) {
  if (!path.empty()) stamps.push_back(stamp_of(path));
}

LoadedMedium load_picture(ImageSource const& source, ImageOptions const& options) {
  LoadedMedium medium;
  add_stamp(medium.stamps, source.path);
  auto loaded = load_image(source, options);
  medium.grid.grid = loaded.grid;
  medium.pixels = std::move(loaded.resized.rgb);
  return medium;
}

LoadedMedium load_frames(VideoSource const& source, VideoOptions const& options) {
  LoadedMedium medium;
  add_stamp(medium.stamps, source.path);
  for (auto const& frame : source.frames) add_stamp(medium.stamps, frame.path);
  auto loaded = load_video(source, options);
  medium.grid = {loaded.grid, true, std::move(loaded.seconds)};
  medium.pixels = std::move(loaded.frames);
  return medium;
}

}  // namespace

MediaStamp stamp_of(std::string const& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {path, 0, 0};
  return {path, static_cast<std::uint64_t>(info.st_size),
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

MediaCache::MediaCache(ImageOptions options, std::size_t bytes, VideoOptions video)
    : options_(std::move(options)), video_(std::move(video)), limit_(bytes) {
  video_.root = options_.root;
  video_.exif = options_.exif;
  video_.max_pixels = options_.max_pixels;
}

LoadedMedium MediaCache::read(Part const& part) const {
  if (auto const* video = std::get_if<VideoSource>(&part)) return load_frames(*video, video_);
  return load_picture(std::get<ImageSource>(part), options_);
}

std::shared_ptr<LoadedMedium const> MediaCache::load(Part const& part) {
  auto const* video = std::get_if<VideoSource>(&part);
  auto key = video ? key_of(*video) : key_of(std::get<ImageSource>(part));
  if (auto const place = places_.find(key); place != places_.end()) {
    entries_.splice(entries_.begin(), entries_, place->second);
    return place->second->medium;
  }
  return keep(std::move(key), read(part));
}

std::shared_ptr<LoadedMedium const> MediaCache::keep(std::string key, LoadedMedium medium) {
  auto shared = std::make_shared<LoadedMedium const>(std::move(medium));
  bytes_ += shared->pixels.size();
  entries_.push_front({std::move(key), shared});
  places_[entries_.front().key] = entries_.begin();
  while (bytes_ > limit_ && entries_.size() > 1) {
    bytes_ -= entries_.back().medium->pixels.size();
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return shared;
}

}  // namespace vlrerank
