// data/media_fields.cpp -- the many ways in which rows name a picture or a video, in one normal
// form.
#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.hpp"
#include "data/row_parts.hpp"

namespace vlrerank::row_parts {
namespace {

bool is_base64_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/' || c == '-' || c == '_';
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' || c == '-' ? 62 : 63;
}

/// Decodes base64 of either alphabet, padding optional, line breaks ignored.
std::string decode_base64(std::string_view coded, std::string const& name) {
  std::string bytes;
  bytes.reserve(coded.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int held = 0;
  std::size_t digits = 0;
  bool padded = false;
  for (char const c : coded) {
    if (c == '\r' || c == '\n' || c == ' ') continue;
    if (c == '=') {
      padded = true;
      continue;
    }
    if (!is_base64_character(c) || padded) reject(name + " holds bytes that are not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(base64_value(c));
    held += 6;
    ++digits;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held & 0xff);
    }
  }
  if (digits % 4 == 1) reject(name + " holds base64 that is cut off");
  if (bytes.empty()) reject(name + " holds no bytes");
  return bytes;
}

/// Base64 in the place of a path: long, nothing but base64, and it begins as a picture file does.
bool is_raw_base64(std::string_view value) {
  constexpr std::array<std::string_view, 7> kStarts = {"iVBORw0KGg", "/9j/", "R0lGOD", "UklGR",
                                                       "Qk",         "SUkq", "TU0A"};
  constexpr std::size_t kShortest = 64;  // characters; no picture file has fewer bytes than 48
  if (value.size() < kShortest) return false;
  if (std::none_of(kStarts.begin(), kStarts.end(),
                   [value](std::string_view start) { return value.starts_with(start); }))
    return false;
  return std::all_of(value.begin(), value.end(), [](char c) {
    return is_base64_character(c) || c == '=' || c == '\n' || c == '\r';
  });
}

std::string lower(std::string text_in) {
  std::transform(text_in.begin(), text_in.end(), text_in.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return text_in;
}

/// A path as written becomes one that can be opened from the working directory.
std::string resolve(std::string path, std::string const& name, Context const& context) {
  if (path.empty()) reject(name + " is an empty path");
  if (path.find('\0') != std::string::npos) reject(name + " is a path with a NUL character");
  auto const scheme = lower(path.substr(0, 8));
  if (scheme.starts_with("http://") || scheme.starts_with("https://"))
    reject(name + " is a web address; download it and give the file: " + path.substr(0, 200));
  if (scheme.starts_with("file://")) path.erase(0, 7);
  if (context.folder.empty() || std::filesystem::path(path).is_absolute()) return path;
  return (std::filesystem::path(context.folder) / path).string();
}

ImageSource image_of_string(std::string const& value, std::string const& name,
                            Context const& context) {
  if (lower(value.substr(0, 5)) == "data:") {
    auto const comma = value.find(',');
    if (comma == std::string::npos ||
        lower(value.substr(0, comma)).find(";base64") == std::string::npos)
      reject(name + " is a data: address without base64");
    return {"", decode_base64(std::string_view(value).substr(comma + 1), name)};
  }
  if (is_raw_base64(value)) return {"", decode_base64(value, name)};
  return {resolve(value, name, context), ""};
}

bool looks_like_picture(json const& value) {
  if (value.is_object()) return true;
  if (!value.is_string()) return false;
  auto const& written = value.get_ref<std::string const&>();
  if (lower(written.substr(0, 11)) == "data:image/" || is_raw_base64(written)) return true;
  constexpr std::array<std::string_view, 8> kEndings = {".png", ".jpg", ".jpeg", ".webp",
                                                        ".bmp", ".gif", ".tif",  ".tiff"};
  auto const ending = lower(std::filesystem::path(written).extension().string());
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<ImageSource> frames_of(json const& list, std::string const& name,
                                   Context const& context) {
  if (list.empty()) reject(name + " is a video without frames");
  std::vector<ImageSource> frames;
  for (std::size_t i = 0; i < list.size(); ++i)
    frames.push_back(image_of(list[i], text(name, "[", i, "]"), context));
  return frames;
}

VideoSource video_of(json const& value, std::string const& name, Context const& context) {
  VideoSource video;
  if (value.is_string()) {
    video.path = resolve(value.get<std::string>(), name, context);
  } else if (value.is_array()) {
    video.frames = frames_of(value, name, context);
  } else if (value.is_object()) {
    auto const& fps = member(value, "fps");
    if (!fps.is_null() && !(fps.is_number() && fps.get<double>() > 0))
      reject(name + ".fps is not a positive number");
    video.fps = fps.is_null() ? 0 : fps.get<double>();
    for (auto const* key : {"frames", "path", "video", "url"}) {
      auto const& inner = member(value, key);
      if (inner.is_null()) continue;
      auto const fps_given = video.fps;
      video = video_of(inner, name + "." + key, context);
      if (fps_given > 0) video.fps = fps_given;
      return video;
    }
    reject(name + " has neither path nor frames");
  } else {
    reject(text(name, " is ", kind_of(value), ", not a video file or a list of frames"));
  }
  return video;
}

/// The one of two spellings that is set, with its name; null, [], {} and "" are not.
std::pair<json const*, std::string> either(json const& row, std::string const& plural,
                                           std::string const& singular) {
  static json const none;
  auto const set = [](json const& value) { return !value.empty() && value != ""; };
  auto const& many = member(row, plural);
  auto const& one = member(row, singular);
  if (set(many) && set(one)) reject("both " + plural + " and " + singular + " are given");
  if (set(one)) return {&one, singular};
  return {set(many) ? &many : &none, plural};
}

/// The entry of each document; a flat list counts only when it has one medium for each.
std::vector<json> entries(json const& value, std::string const& name, std::size_t documents) {
  if (value.is_null()) return std::vector<json>(documents);
  auto const list = value.is_array() ? value.get<std::vector<json>>() : std::vector<json>{value};
  if (list.size() != documents)
    reject(text(name, " has ", list.size(), list.size() == 1 ? " entry" : " entries", " for ",
                documents, documents == 1 ? " document" : " documents",
                "; give one list a document"));
  return list;
}

}  // namespace

ImageSource image_of(json const& value, std::string const& name, Context const& context) {
  if (value.is_string()) return image_of_string(value.get_ref<std::string const&>(), name, context);
  if (!value.is_object())
    reject(text(name, " is ", kind_of(value), ", not a path, base64 or {path, bytes}"));
  auto const& bytes = member(value, "bytes");
  if (!bytes.is_null()) {
    if (!bytes.is_string()) reject(name + ".bytes is not base64 in a string");
    auto const& coded = bytes.get_ref<std::string const&>();
    if (lower(coded.substr(0, 5)) == "data:") return image_of_string(coded, name, context);
    return {"", decode_base64(coded, name + ".bytes")};
  }
  for (auto const* key : {"path", "url", "image", "image_url"}) {
    auto const& inner = member(value, key);
    if (!inner.is_null()) return image_of(inner, name + "." + key, context);
  }
  reject(name + " has neither path nor bytes");
}

std::vector<ImageSource> images_of(json const& value, std::string const& name,
                                   Context const& context) {
  std::vector<ImageSource> images;
  if (value.is_null()) return images;
  if (!value.is_array()) return {image_of(value, name, context)};
  for (std::size_t i = 0; i < value.size(); ++i)
    images.push_back(image_of(value[i], text(name, "[", i, "]"), context));
  return images;
}

std::vector<VideoSource> videos_of(json const& value, std::string const& name,
                                   Context const& context) {
  std::vector<VideoSource> videos;
  if (value.is_null() || (value.is_array() && value.empty())) return videos;
  bool const frames =
      value.is_array() && std::all_of(value.begin(), value.end(), [](json const& item) {
        return looks_like_picture(item) && !has(item, "frames") && !has(item, "video");
      });
  if (!value.is_array() || frames) return {video_of(value, name, context)};
  for (std::size_t i = 0; i < value.size(); ++i)
    videos.push_back(video_of(value[i], text(name, "[", i, "]"), context));
  return videos;
}

MediaLists media_fields(json const& row, std::string const& prefix, Context const& context) {
  auto const [images, images_name] = either(row, prefix + "images", prefix + "image");
  auto const [videos, videos_name] = either(row, prefix + "videos", prefix + "video");
  for (auto const* kind : {"audios", "audio"}) {
    auto const& audio = member(row, prefix + kind);
    if (!audio.is_null() && !audio.empty())
      reject(prefix + kind + " is given, but sound is not supported");
  }
  return {images_of(*images, images_name, context), videos_of(*videos, videos_name, context)};
}

std::vector<MediaLists> media_per_document(json const& row, std::string const& prefix,
                                           std::size_t documents, Context const& context) {
  auto const [images, images_name] = either(row, prefix + "images", prefix + "image");
  auto const [videos, videos_name] = either(row, prefix + "videos", prefix + "video");
  auto const image_entries = entries(*images, images_name, documents);
  auto const video_entries = entries(*videos, videos_name, documents);
  std::vector<MediaLists> media(documents);
  for (std::size_t i = 0; i < documents; ++i) {
    media[i].images = images_of(image_entries[i], text(images_name, "[", i, "]"), context);
    media[i].videos = videos_of(video_entries[i], text(videos_name, "[", i, "]"), context);
  }
  for (auto const* kind : {"audios", "audio"}) {
    auto const& audio = member(row, prefix + kind);
    if (!audio.is_null() && !audio.empty())
      reject(prefix + kind + " is given, but sound is not supported");
  }
  return media;
}

}  // namespace vlrerank::row_parts
