// media/video_file.cpp -- video files through FFmpeg's libraries, from an open file: no other file
// and no network is ever reached, whatever the container says.
// This is the only file that includes FFmpeg's headers.
#include "media/video_file.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "media/bytes.hpp"
#include "media/turn.hpp"

namespace vlrerank {
namespace {

constexpr char const* replace_video = "replace the video, or give its frames as pictures";
/// Containers of films. Others (playlists, image sequences) name further files.
constexpr char const* containers =
    "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,ogg,gif,asf,h264,hevc,m4v,ivf,mxf,nut,wtv";

std::string reason_of(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> reason{};
  av_strerror(error, reason.data(), reason.size());
  return reason.data();
}

int check(int result, char const* step) {
  VLR_INPUT(result >= 0, text("not a video that can be read: ", step, ": ", reason_of(result)),
            replace_video);
  return result;
}

void free_io(AVIOContext* io) noexcept {
  av_freep(&io->buffer);
  avio_context_free(&io);
}
void free_format(AVFormatContext* format) noexcept {
  avformat_close_input(&format);
}
void free_decoder(AVCodecContext* decoder) noexcept {
  avcodec_free_context(&decoder);
}
void free_packet(AVPacket* packet) noexcept {
  av_packet_free(&packet);
}
void free_frame(AVFrame* frame) noexcept {
  av_frame_free(&frame);
}
using Io = Handle<AVIOContext*, free_io>;
using Format = Handle<AVFormatContext*, free_format>;
using Decoder = Handle<AVCodecContext*, free_decoder>;
using Packet = Handle<AVPacket*, free_packet>;
using Frame = Handle<AVFrame*, free_frame>;
void free_scaler(SwsContext* scaler) noexcept {
  sws_freeContext(scaler);
}
using Scaler = Handle<SwsContext*, free_scaler>;

/// An open container: reads from our descriptor only.
class Container {
 public:
  Container(OpenFile const& file, VideoOptions const& options)
      : reader_(file.handle.get(), file.size) {
    constexpr int buffer_bytes = 1 << 16;
    av_log_set_level(AV_LOG_QUIET);  // what goes wrong is said in our errors
    auto* const buffer = static_cast<unsigned char*>(av_malloc(buffer_bytes));
    io_ = Io(avio_alloc_context(buffer, buffer_bytes, 0, this, on_read, nullptr, on_seek));
    auto* format = avformat_alloc_context();
    VLR_REQUIRE(io_.get() != nullptr && format != nullptr, "no memory for a video", "free some");
    format->pb = io_.get();
    format->io_open = on_open;
    AVDictionary* settings = nullptr;
    av_dict_set(&settings, "format_whitelist", containers, 0);
    int const opened = avformat_open_input(&format, nullptr, nullptr, &settings);
    av_dict_free(&settings);
    check(opened, "the container");  // which freed the context when it failed
    format_ = Format(format);
    check(avformat_find_stream_info(format, nullptr), "its streams");
    stream_ = check(av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0),
                    "no stream of pictures");
    VLR_INPUT((stream()->disposition & AV_DISPOSITION_ATTACHED_PIC) == 0,
              "not a video: its only picture is a cover", replace_video);
    auto const pixels = std::int64_t{parameters().width} * parameters().height;
    VLR_INPUT(parameters().width > 0 && parameters().height > 0 && pixels <= options.max_pixels,
              text("frames of ", parameters().width, "x", parameters().height,
                   " pixels, the limit is ", options.max_pixels, " in all"),
              replace_video);
    for (unsigned i = 0; i < format->nb_streams; ++i)
      if (static_cast<int>(i) != stream_) format->streams[i]->discard = AVDISCARD_ALL;
  }
  Container(Container const&) = delete;
  Container& operator=(Container const&) = delete;

  AVStream const* stream() const { return format_.get()->streams[stream_]; }
  AVCodecParameters const& parameters() const { return *stream()->codecpar; }

  /// The next packet of the video; false at the end.
  bool next(AVPacket* packet) {
    while (true) {
      av_packet_unref(packet);
      if (av_read_frame(format_.get(), packet) < 0) return false;
      if (packet->stream_index == stream_) return true;
    }
  }

 private:
  static int on_read(void* self, std::uint8_t* out, int count) {
    auto& container = *static_cast<Container*>(self);
    auto const left = container.reader_.size() - std::min(container.at_, container.reader_.size());
    auto const taken = std::min(left, static_cast<std::uint64_t>(std::max(count, 0)));
    if (taken == 0) return AVERROR_EOF;
    if (!container.reader_.read(container.at_, {out, static_cast<std::size_t>(taken)}))
      return AVERROR(EIO);
    container.at_ += taken;
    return static_cast<int>(taken);
  }

  static std::int64_t on_seek(void* self, std::int64_t offset, int whence) {
    auto& container = *static_cast<Container*>(self);
    auto const size = static_cast<std::int64_t>(container.reader_.size());
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return size;
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(container.at_);
    if (whence == SEEK_END) offset += size;
    if (offset < 0) return AVERROR(EINVAL);
    container.at_ = static_cast<std::uint64_t>(offset);
    return offset;
  }

  static int on_open(AVFormatContext*, AVIOContext**, char const*, int, AVDictionary**) {
    return AVERROR(EACCES);
  }

  ByteReader reader_;
  std::uint64_t at_ = 0;
  Io io_;
  Format format_;
  int stream_ = -1;
};

std::int32_t const* display_matrix(AVStream const* stream) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  auto const* const parameters = stream->codecpar;
  auto const* const data = av_packet_side_data_get(
      parameters->coded_side_data, parameters->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return data == nullptr ? nullptr : reinterpret_cast<std::int32_t const*>(data->data);
#else
  return reinterpret_cast<std::int32_t const*>(
      av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
#endif
}

/// Quarter turns that telephones write, as EXIF's orientation.
std::int32_t orientation_of(AVStream const* stream) {
  auto const* const matrix = display_matrix(stream);
  if (matrix == nullptr) return 1;
  auto const anticlockwise = av_display_rotation_get(matrix);
  if (std::isnan(anticlockwise)) return 1;
  static constexpr std::array<std::int32_t, 4> orientations = {1, 8, 3, 6};
  auto const quarters = static_cast<int>(std::lround(anticlockwise / 90));
  return orientations[static_cast<std::size_t>(quarters & 3)];
}

/// Decoded frames of a video in order, as upright RGB pictures.
class FrameReader {
 public:
  explicit FrameReader(Container& container)
      : container_(container), packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
    auto const* const codec = avcodec_find_decoder(container.parameters().codec_id);
    VLR_INPUT(codec != nullptr,
              text("no decoder for ", avcodec_get_name(container.parameters().codec_id)),
              "install FFmpeg's libraries with it, or convert the video to H.264");
    decoder_ = Decoder(avcodec_alloc_context3(codec));
    auto* const decoder = decoder_.get();
    check(avcodec_parameters_to_context(decoder, &container.parameters()), "the codec's settings");
    decoder->thread_count = 1;
    decoder->max_pixels =
        std::int64_t{container.parameters().width} * container.parameters().height;
    check(avcodec_open2(decoder, codec, nullptr), "the codec");
  }

  /// Decodes the next frame; false at the end. Damaged packets are passed over.
  bool next() {
    while (true) {
      auto const result = avcodec_receive_frame(decoder_.get(), frame_.get());
      if (result >= 0) return true;
      if (result != AVERROR(EAGAIN) || drained_) return false;
      drained_ = !container_.next(packet_.get());
      avcodec_send_packet(decoder_.get(), drained_ ? nullptr : packet_.get());
    }
  }

  Image picture() {
    auto const* const frame = frame_.get();
    auto const& parameters = container_.parameters();
    VLR_INPUT(frame->width == parameters.width && frame->height == parameters.height,
              "the video changes its size on the way", replace_video);
    auto const format = static_cast<AVPixelFormat>(frame->format);
    if (scaler_.get() == nullptr)
      scaler_ =
          Scaler(sws_getContext(frame->width, frame->height, format, frame->width, frame->height,
                                AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr));
    VLR_INPUT(scaler_.get() != nullptr, "its pixel format cannot be turned into RGB",
              replace_video);
    sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(frame->colorspace),
                             frame->color_range == AVCOL_RANGE_JPEG,
                             sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    // The scaler writes whole vectors: rows are padded, then copied tightly.
    auto const tight = static_cast<std::size_t>(frame->width) * 3;
    auto const stride = (tight + 127) / 64 * 64;
    padded_.resize(stride * static_cast<std::size_t>(frame->height + 1));
    std::array<std::uint8_t*, 4> const to{padded_.data()};
    std::array<int, 4> const strides{static_cast<int>(stride)};
    check(sws_scale(scaler_.get(), frame->data, frame->linesize, 0, frame->height, to.data(),
                    strides.data()),
          "turning a frame into RGB");
    Image image{{frame->height, frame->width}, {}};
    image.rgb.reserve(tight * static_cast<std::size_t>(frame->height));
    for (std::int32_t y = 0; y < frame->height; ++y) {
      auto const row = padded_.begin() + static_cast<std::ptrdiff_t>(stride) * y;
      image.rgb.insert(image.rgb.end(), row, row + static_cast<std::ptrdiff_t>(tight));
    }
    return turn(std::move(image), orientation_of(container_.stream()));
  }

 private:
  Container& container_;
  Packet packet_;
  Frame frame_;
  Decoder decoder_;
  Scaler scaler_;
  std::vector<std::uint8_t> padded_;
  bool drained_ = false;
};

}  // namespace

VideoFacts read_video_facts(OpenFile const& file, VideoOptions const& options) {
  Container container(file, options);
  auto const* const stream = container.stream();
  auto const rate = stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
  VLR_INPUT(rate.num > 0 && rate.den > 0, "the video states no frame rate", replace_video);
  auto frames = stream->nb_frames;
  if (frames <= 0) {
    Packet const packet(av_packet_alloc());
    for (frames = 0; container.next(packet.get());) ++frames;
  }
  VLR_INPUT(frames > 0 && frames <= std::numeric_limits<std::int32_t>::max(),
            text("a video of ", frames, " frames"), replace_video);
  ImageSize const stored{container.parameters().height, container.parameters().width};
  return {turned(stored, orientation_of(stream)), static_cast<std::int32_t>(frames), av_q2d(rate)};
}

void decode_video(OpenFile const& file, VideoOptions const& options,
                  std::vector<std::int32_t> const& wanted,
                  std::function<void(Image const&)> const& take) {
  // Containers count frames that only help others (edit lists): so many may miss at the end.
  constexpr std::int32_t max_missing = 3;
  Container container(file, options);
  FrameReader reader(container);
  std::size_t taken = 0;
  std::int32_t number = 0;
  Image last;
  for (; taken < wanted.size() && reader.next(); ++number) {
    if (wanted[taken] > number && wanted.back() - number > max_missing) continue;
    last = reader.picture();
    for (; taken < wanted.size() && wanted[taken] == number; ++taken) take(last);
  }
  VLR_INPUT(taken == wanted.size() || (number > 0 && wanted.back() - number < max_missing),
            text("the video is cut or damaged: ", number, " frames decode, number ",
                 wanted.empty() ? 0 : wanted.back() + 1, " is needed"),
            replace_video);
  for (; taken < wanted.size(); ++taken) take(last);
}

}  // namespace vlrerank
