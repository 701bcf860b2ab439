// tests/media/video_test.cpp -- videos as lists of frames against the reference, and as files that
// the test writes without loss.
#include <gtest/gtest.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "media/encoders.hpp"
#include "media/patches.hpp"
#include "media/video.hpp"
#include "support/golden.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

/// A frame of one shade, told by its number.
Image shaded(ImageSize size, int number) {
  return {size, std::vector<std::uint8_t>(std::size_t(size.height * size.width * 3),
                                          static_cast<std::uint8_t>(number * 3))};
}

/// Writes a Matroska or AVI file of `count` shaded frames, losslessly coded.
void write_video(fs::path const& path, ImageSize size, int count, AVRational rate) {
  AVFormatContext* file = nullptr;
  avformat_alloc_output_context2(&file, nullptr, nullptr, path.c_str());
  auto const* codec = avcodec_find_encoder(AV_CODEC_ID_FFV1);
  auto* encoder = avcodec_alloc_context3(codec);
  encoder->width = size.width;
  encoder->height = size.height;
  encoder->pix_fmt = AV_PIX_FMT_0RGB32;
  encoder->time_base = {rate.den, rate.num};
  encoder->framerate = rate;
  if ((file->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  avcodec_open2(encoder, codec, nullptr);
  auto* stream = avformat_new_stream(file, nullptr);
  avcodec_parameters_from_context(stream->codecpar, encoder);
  stream->time_base = encoder->time_base;
  stream->avg_frame_rate = rate;
  avio_open(&file->pb, path.c_str(), AVIO_FLAG_WRITE);
  ASSERT_GE(avformat_write_header(file, nullptr), 0);
  auto* packet = av_packet_alloc();
  for (int i = 0; i <= count; ++i) {
    AVFrame* frame = nullptr;
    if (i < count) {
      frame = av_frame_alloc();
      frame->width = size.width;
      frame->height = size.height;
      frame->format = encoder->pix_fmt;
      frame->pts = i;
      av_frame_get_buffer(frame, 0);
      for (int y = 0; y < size.height; ++y)
        std::fill_n(frame->data[0] + y * frame->linesize[0], 4 * size.width,
                    static_cast<std::uint8_t>(i * 3));
    }
    avcodec_send_frame(encoder, frame);
    av_frame_free(&frame);
    while (avcodec_receive_packet(encoder, packet) == 0) {
      av_packet_rescale_ts(packet, encoder->time_base, stream->time_base);
      av_interleaved_write_frame(file, packet);
    }
  }
  av_write_trailer(file);
  av_packet_free(&packet);
  avio_closep(&file->pb);
  avcodec_free_context(&encoder);
  avformat_free_context(file);
}

class Videos : public testing::Test {
 protected:
  Videos() { fs::create_directories(folder_); }
  ~Videos() override { fs::remove_all(folder_); }

  std::string refusal(VideoSource const& source, VideoOptions const& options = {}) const {
    try {
      load_video(source, options);
      return "";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input) << error.what();
      return error.summary();
    }
  }

  fs::path folder_ = fs::temp_directory_path() / text("vlrerank-videos-", ::getpid());
};

/// The shade of each frame of a video whose frames have one.
std::vector<int> shades(LoadedVideo const& video) {
  auto const bytes = std::size_t(video.resized.height * video.resized.width * 3);
  std::vector<int> out;
  for (std::size_t at = 0; at < video.frames.size(); at += bytes)
    out.push_back(video.frames[at + bytes / 2] / 3);
  return out;
}

VideoSource list_of(std::vector<ImageSize> const& sizes) {
  VideoSource source;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto const frame = shaded(sizes[i], static_cast<int>(i));
    source.frames.push_back({"", encode_png({.size = sizes[i], .rows = frame.rgb})});
  }
  return source;
}

TEST_F(Videos, TheReferencesFramesArePatchedExactly) {
  Golden const golden(test_data("reference/cases/video_4_frames.safetensors"));
  auto const grid = golden["video_grid_thw"].as<std::int64_t>();
  VideoSource source;
  for (int i = 0; i < 4; ++i)
    source.frames.push_back({test_data(text("reference/images/frame", i, ".png")).string(), ""});

  auto const video = load_video(source, {});
  std::vector<std::uint8_t> patches(std::size_t(video.grid.t * video.grid.h * video.grid.w) *
                                    patch_values);
  patchify(video.frames, video.grid, patches.data());

  EXPECT_EQ(video.grid,
            (Grid{static_cast<std::int32_t>(grid[0]), static_cast<std::int32_t>(grid[1]),
                  static_cast<std::int32_t>(grid[2])}));
  EXPECT_EQ(video.seconds, (std::vector<double>{0.25, 1.25}));
  EXPECT_EQ(patches, golden["pixel_values_videos_u8"].as<std::uint8_t>());
}

TEST_F(Videos, AProbeOfAListTellsWhatLoadingGives) {
  auto const source = list_of({{70, 90}, {70, 90}, {70, 90}});
  auto const shape = probe_video(source, {});
  auto const video = load_video(source, {});

  EXPECT_EQ(video.grid.t, 2);
  EXPECT_EQ(shades(video), (std::vector<int>{0, 1, 2, 2})) << "the last one fills the pair";
  EXPECT_EQ(shape.grid, video.grid);
  EXPECT_EQ(shape.seconds, video.seconds);
  EXPECT_EQ(shape.resized, video.resized);
}

TEST_F(Videos, LongListsAreThinnedOutEvenly) {
  std::vector<ImageSize> const sizes(11, {64, 64});
  VideoOptions options;
  options.max_frames = 4;
  auto source = list_of(sizes);
  source.fps = 4;

  auto const video = load_video(source, options);

  EXPECT_EQ(shades(video), (std::vector<int>{0, 3, 6, 10}));
  EXPECT_EQ(video.seconds, (std::vector<double>{0.125, 0.625}));
}

TEST_F(Videos, FramesOfDifferentShapesAreRefused) {
  auto const reason = refusal(list_of({{64, 64}, {64, 640}}));

  EXPECT_NE(reason.find("differ"), std::string::npos) << reason;
  EXPECT_NE(refusal({}).find("neither"), std::string::npos);
  EXPECT_NE(refusal({"", {{"/nowhere/a.png", ""}}, 0}).find("/nowhere/a.png"), std::string::npos);
}

TEST_F(Videos, AFileIsSampledAtTheRateAskedFor) {
  auto const path = (folder_ / "a.mkv").string();
  write_video(path, {48, 64}, 60, {10, 1});

  auto const video = load_video({path, {}, 0}, {});
  auto const twice = load_video({path, {}, 2}, {});

  // 6 seconds at 1 a second: linspace(0, 59, 6) rounded.
  EXPECT_EQ(shades(video), (std::vector<int>{0, 12, 24, 35, 47, 59}));
  ASSERT_EQ(video.seconds.size(), 3u);
  EXPECT_NEAR(video.seconds[0], 0.6, 1e-12);
  EXPECT_NEAR(video.seconds[2], 5.3, 1e-12);
  EXPECT_EQ(video.resized, (ImageSize{320, 448})) << "at least 128 tokens a frame";
  EXPECT_EQ(twice.grid.t, 6);
}

TEST_F(Videos, TheLimitsOfFramesAndPixelsHold) {
  auto const path = (folder_ / "b.avi").string();
  write_video(path, {48, 64}, 80, {4, 1});
  VideoOptions few;
  few.max_frames = 7;  // rounded down to pairs
  VideoOptions many;
  many.fps = 100;
  many.max_frames = 1000;

  EXPECT_EQ(shades(load_video({path, {}, 0}, few)), (std::vector<int>{0, 16, 32, 47, 63, 79}));
  EXPECT_EQ(probe_video({path, {}, 0}, many).grid.t, 40) << "not more than there are";
  EXPECT_EQ(frame_size({1080, 1920}, 64, 7864320), (ImageSize{352, 640}));
  EXPECT_EQ(frame_size({1080, 1920}, 4, 7864320), (ImageSize{640, 1152}));
  EXPECT_EQ(frame_size({1080, 1920}, 1000, 7864320), (ImageSize{256, 480}));
}

TEST_F(Videos, ShortFilesGiveAtLeastOnePair) {
  for (int const count : {1, 2, 3, 5}) {
    auto const path = (folder_ / text("short", count, ".mkv")).string();
    write_video(path, {64, 64}, count, {25, 1});

    auto const video = load_video({path, {}, 0}, {});

    EXPECT_EQ(video.grid.t, count < 4 ? 1 : 2) << count;
    EXPECT_EQ(shades(video).back(), count - 1);
    EXPECT_EQ(probe_video({path, {}, 0}, {}).grid, video.grid);
  }
}

TEST_F(Videos, WhatIsNoVideoIsRefusedByName) {
  auto const list = folder_ / "playlist.m3u8";
  std::ofstream(list) << "#EXTM3U\n#EXTINF:1,\n/etc/passwd\n";
  auto const concat = folder_ / "concat.mp4";
  std::ofstream(concat) << "ffconcat version 1.0\nfile /etc/passwd\n";
  auto const whole = folder_ / "whole.avi";
  write_video(whole, {64, 64}, 30, {10, 1});
  auto const bytes = read_file(whole);
  auto const cut = folder_ / "cut.avi";
  std::ofstream(cut, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  VideoOptions rooted;
  rooted.root = folder_ / "inner";
  fs::create_directories(rooted.root);

  for (auto const& path : {list, concat, cut, folder_, folder_ / "missing.mp4"})
    EXPECT_NE(refusal({path.string(), {}, 0}).find(path.filename().string()), std::string::npos);
  EXPECT_NE(refusal({whole.string(), {}, 0}, rooted).find("outside"), std::string::npos);
}

TEST_F(Videos, DamagedFilesGiveAnErrorOrAVideo) {
  auto const path = folder_ / "damaged.mkv";
  write_video(path, {32, 32}, 8, {4, 1});
  auto const whole = read_file(path);
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    auto bytes = whole;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << bytes;
    refusal({path.string(), {}, 0});
  }
}

/// FNV-1a of 64 bits.
std::uint64_t hash(std::vector<std::uint8_t> const& bytes) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (auto const byte : bytes) sum = (sum ^ byte) * 0x100000001b3u;
  return sum;
}

struct FrameCase {
  ImageSize from;
  ImageSize to;
  std::uint64_t expected;
};

// Expected: torch 2.11.0 on x86-64 with AVX2, interpolate(float32, mode="bicubic",
// antialias=True), clamp(0, 255), round(), of the same numbers.
TEST(ResizeFrame, EqualsLibTorchsKernelInEveryBit) {
  for (auto const& [from, to, expected] : {FrameCase{{48, 80}, {96, 64}, 0x65d4b2cdf21ede50u},
                                           FrameCase{{120, 200}, {32, 64}, 0xd52fe1c2274fe665u},
                                           FrameCase{{97, 131}, {64, 96}, 0xc0599ad141780a1au},
                                           FrameCase{{33, 64}, {96, 32}, 0xed0877a48eb95e08u}}) {
    Image frame{from, {}};
    for (std::uint64_t i = 0; i < std::uint64_t(from.height * from.width * 3); ++i)
      frame.rgb.push_back(static_cast<std::uint8_t>(i * 2654435761u >> 13));

    EXPECT_EQ(hash(resize_frame(frame, to).rgb), expected) << from.height << " to " << to.height;
  }
}

TEST(ResizeFrame, StaysWithinTwoLevelsOfThePictureResize) {
  Image frame{{120, 200}, {}};
  for (int y = 0; y < 120; ++y)
    for (int x = 0; x < 200; ++x)
      for (int c = 0; c < 3; ++c)
        frame.rgb.push_back(
            static_cast<std::uint8_t>(128 + 90 * std::sin(x / 7.0 + c) * std::cos(y / 11.0)));
  for (ImageSize const size : {ImageSize{64, 96}, ImageSize{256, 320}, ImageSize{120, 320}}) {
    auto const ours = resize_frame(frame, size);
    auto const pillow = resize_bicubic(frame, size);

    ASSERT_EQ(ours.rgb.size(), pillow.rgb.size());
    for (std::size_t i = 0; i < ours.rgb.size(); ++i)
      ASSERT_LE(std::abs(int{ours.rgb[i]} - int{pillow.rgb[i]}), 2);
  }
  EXPECT_EQ(resize_frame(frame, frame.size).rgb, frame.rgb);
}

}  // namespace
}  // namespace vlrerank
