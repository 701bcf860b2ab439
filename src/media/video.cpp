// media/video.cpp -- which frames of a video are taken, their times and their size.
// Source: the reference script and qwen-vl-utils 0.0.14, as its README tells ("Video as a list of
// frames").
#include "media/video.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/error.hpp"
#include "media/named.hpp"
#include "media/video_file.hpp"

namespace vlrerank {
namespace {

constexpr std::int32_t factor = 32;
constexpr double token_pixels = factor * factor;
constexpr double list_total_pixels = 10 * 768 * token_pixels;
constexpr double file_total_pixels = 0.9 * 128'000 * token_pixels;
/// Each frame of a list is first resized like a picture with twice the factor.
constexpr std::int32_t list_factor = 64;

/// Frames to take and what they are, before any is decoded.
struct Plan {
  std::vector<std::int32_t> frames;  ///< numbers, an even count of them
  VideoShape shape;
};

ImageSize list_size(ImageSize size) {
  constexpr double pixels = list_factor * list_factor;
  return fit_size(size, list_factor, 4 * pixels, 16384 * pixels);
}

std::vector<double> pair_seconds(std::vector<double> const& times) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i + 1 < times.size(); i += 2)
    seconds.push_back((times[i] + times[i + 1]) / 2);
  return seconds;
}

VideoShape make_shape(ImageSize size, std::vector<double> const& times, double total_pixels) {
  VideoShape shape;
  shape.resized = frame_size(size, static_cast<std::int32_t>(times.size()), total_pixels);
  shape.grid = grid_of(shape.resized);
  shape.grid.t = static_cast<std::int32_t>(times.size() / 2);
  shape.seconds = pair_seconds(times);
  return shape;
}

/// Numbers of the pictures of a list: all, or evenly spread ones.
std::vector<std::int32_t> thin_out(std::int32_t count, std::int32_t max_frames) {
  std::vector<std::int32_t> frames(static_cast<std::size_t>(std::min(count, max_frames)));
  std::iota(frames.begin(), frames.end(), 0);
  if (count <= max_frames) return frames;
  auto const step = static_cast<double>(count - 1) / std::max(max_frames - 1, 1);
  for (auto& frame : frames) frame = static_cast<std::int32_t>(frame * step);
  if (max_frames > 1) frames.back() = count - 1;
  return frames;
}

Plan plan_list(VideoSource const& source, VideoOptions const& options,
               ImageOptions const& image_options) {
  VLR_USAGE(options.max_frames > 0, text("max frames ", options.max_frames), "choose 1 or more");
  Plan plan;
  plan.frames = thin_out(static_cast<std::int32_t>(source.frames.size()), options.max_frames);
  ImageSize first;
  for (auto const number : plan.frames) {
    auto const& frame = source.frames[static_cast<std::size_t>(number)];
    auto const size = name_errors(
        name_of(frame), [&] { return list_size(probe_image(frame, image_options).size); });
    if (first == ImageSize{}) first = size;
    VLR_INPUT(size == first, text(name_of(frame), ": the frames of a video differ in shape"),
              "give all frames one size");
  }
  if (plan.frames.size() % 2 == 1) plan.frames.push_back(plan.frames.back());
  auto const fps = source.fps > 0 ? source.fps : options.list_fps;
  std::vector<double> times;
  for (std::size_t i = 0; i < plan.frames.size(); ++i)
    times.push_back(static_cast<double>(i) / fps);
  plan.shape = make_shape(
      first, times,
      options.total_pixels > 0 ? static_cast<double>(options.total_pixels) : list_total_pixels);
  return plan;
}

/// How many frames of a file: an even number, `fps` a second within the limits.
std::int32_t count_frames(VideoFacts const& facts, double fps, VideoOptions const& options) {
  auto const even = [](double value) { return std::floor(value / 2) * 2; };
  auto const lower = std::ceil(options.min_frames / 2.0) * 2;
  auto const upper = even(options.max_frames);
  auto const wished = facts.frames / facts.fps * fps;
  auto const count = std::min(std::min(std::max(wished, lower), upper), double(facts.frames));
  return static_cast<std::int32_t>(std::max(even(count), 2.0));
}

Plan plan_file(VideoFacts const& facts, double fps, VideoOptions const& options) {
  Plan plan;
  auto const count = count_frames(facts, fps, options);
  // Evenly spread from the first to the last, in float32 from both ends like torch.linspace.
  auto const last = static_cast<float>(facts.frames - 1);
  auto const step = last / static_cast<float>(count - 1);
  std::vector<double> times;
  for (std::int32_t i = 0; i < count; ++i) {
    auto const place = i < count / 2 ? step * static_cast<float>(i)
                                     : last - step * static_cast<float>(count - 1 - i);
    plan.frames.push_back(static_cast<std::int32_t>(std::nearbyint(place)));
    times.push_back(plan.frames.back() / facts.fps);
  }
  plan.shape = make_shape(
      facts.size, times,
      options.total_pixels > 0 ? static_cast<double>(options.total_pixels) : file_total_pixels);
  return plan;
}

ImageOptions frame_options(VideoOptions const& options) {
  ImageOptions image;
  image.exif = options.exif;
  image.max_pixels = options.max_pixels;
  image.root = options.root;
  return image;
}

LoadedVideo make_video(VideoShape const& shape) {
  LoadedVideo video{shape.grid, shape.seconds, shape.resized, {}};
  video.frames.reserve(std::size_t(6 * shape.grid.t) * std::size_t(shape.resized.height) *
                       std::size_t(shape.resized.width));
  return video;
}

void append(LoadedVideo& video, Image const& frame) {
  auto const resized = resize_frame(frame, video.resized);
  video.frames.insert(video.frames.end(), resized.rgb.begin(), resized.rgb.end());
}

LoadedVideo load_list(VideoSource const& source, VideoOptions const& options) {
  auto const image_options = frame_options(options);
  auto const plan = plan_list(source, options, image_options);
  auto video = make_video(plan.shape);
  for (std::size_t i = 0; i < plan.frames.size(); ++i) {
    if (i > 0 && plan.frames[i] == plan.frames[i - 1]) {  // the last one again
      auto const bytes = static_cast<std::ptrdiff_t>(video.frames.size() / i);
      video.frames.resize(video.frames.size() + static_cast<std::size_t>(bytes));
      std::copy_n(video.frames.end() - 2 * bytes, bytes, video.frames.end() - bytes);
      continue;
    }
    auto const frame =
        decode_source(source.frames[static_cast<std::size_t>(plan.frames[i])], image_options);
    append(video, resize_bicubic(frame, list_size(frame.size)));
  }
  return video;
}

Plan plan_open_file(OpenFile const& file, VideoSource const& source, VideoOptions const& options) {
  auto const fps = source.fps > 0 ? source.fps : options.fps;
  VLR_USAGE(options.min_frames > 0 && options.max_frames >= 2 && fps > 0,
            text("video limits: ", fps, " frames a second, ", options.min_frames, " to ",
                 options.max_frames, " frames"),
            "choose a positive rate and at least 2 frames");
  return plan_file(read_video_facts(file, options), fps, options);
}

void check_source(VideoSource const& source) {
  VLR_INPUT(!source.path.empty() || !source.frames.empty(),
            "the video has neither a path nor frames",
            "give one of them, or remove the video from the row");
}

}  // namespace

ImageSize frame_size(ImageSize size, std::int32_t frames, double total_pixels) {
  auto const min_pixels = 128 * token_pixels;
  auto const share = std::min(768 * token_pixels, total_pixels / frames * 2);
  return fit_size(size, factor, min_pixels, std::max(share, std::floor(min_pixels * 1.05)));
}

VideoShape probe_video(VideoSource const& source, VideoOptions const& options) {
  check_source(source);
  if (source.path.empty()) return plan_list(source, options, frame_options(options)).shape;
  return name_errors(source.path, [&] {
    return plan_open_file(open_regular(source.path, options.root), source, options).shape;
  });
}

LoadedVideo load_video(VideoSource const& source, VideoOptions const& options) {
  check_source(source);
  if (source.path.empty()) return load_list(source, options);
  return name_errors(source.path, [&] {
    auto const file = open_regular(source.path, options.root);
    auto const plan = plan_open_file(file, source, options);
    auto video = make_video(plan.shape);
    decode_video(file, options, plan.frames, [&](Image const& frame) { append(video, frame); });
    return video;
  });
}

}  // namespace vlrerank
