// media/video_file_missing.cpp -- takes the place of video_file.cpp in a build without FFmpeg.
#include "core/error.hpp"
#include "media/video_file.hpp"

namespace vlrerank {
namespace {

[[noreturn]] void refuse() {
  throw Error(Exit::input, "this build reads no video files",
              "build with FFmpeg's libraries (libavformat, libavcodec, libavutil, libswscale), or "
              "give the video as a list of frames",
              VLR_WHERE);
}

}  // namespace

VideoFacts read_video_facts(OpenFile const&, VideoOptions const&) {
  refuse();
}

void decode_video(OpenFile const&, VideoOptions const&, std::vector<std::int32_t> const&,
                  std::function<void(Image const&)> const&) {
  refuse();
}

}  // namespace vlrerank
