// app/check_dump.cpp -- decodes a row's media and encodes its pairs, keeping every figure.
#include "app/check_dump.hpp"

#include <openssl/evp.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "media/named.hpp"

namespace vlrerank {
namespace {

using Json = nlohmann::ordered_json;

std::string sha256(std::vector<std::uint8_t> const& bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  VLR_REQUIRE(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
      "SHA-256 failed", "check the installation of OpenSSL");
  std::string out;
  for (auto const byte : digest) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

/// The mean of each channel, to four decimals.
Json mean_colour(Image const& image) {
  std::array<std::uint64_t, 3> sums{};
  for (std::size_t i = 0; i < image.rgb.size(); ++i) sums[i % 3] += image.rgb[i];
  Json mean = Json::array();
  for (auto const sum : sums) {
    auto const value = static_cast<double>(sum) / (static_cast<double>(image.rgb.size()) / 3);
    mean.push_back(std::round(value * 1e4) / 1e4);
  }
  return mean;
}

Json pixel_at(Image const& image, std::size_t offset) {
  return {image.rgb[offset], image.rgb[offset + 1], image.rgb[offset + 2]};
}

Json thw(Grid const& grid) {
  return {grid.t, grid.h, grid.w};
}

/// A medium's figures, and its grid for the encoder.
std::pair<Json, MediumGrid> dump_image(ImageSource const& source, ImageOptions const& options) {
  return name_errors(name_of(source), [&] {
    auto const image = decode_image(read_source(source, options), options);
    auto const size = target_size(image.size, options);
    auto const resized = resize_bicubic(image, size);
    auto const grid = grid_of(size);
    Json json = {{"size_wh", {image.size.width, image.size.height}},
                 {"rgb_mean", mean_colour(image)},
                 {"px_topleft", pixel_at(image, 0)},
                 {"px_bottomright", pixel_at(image, image.rgb.size() - 3)},
                 {"sha256_rgb8", sha256(image.rgb)},
                 {"resized_hw", {size.height, size.width}},
                 {"grid_thw", thw(grid)},
                 {"image_tokens", grid.tokens()},
                 {"sha256_resized_rgb8", sha256(resized.rgb)}};
    return std::pair(std::move(json), MediumGrid{grid, false, {}});
  });
}

std::pair<Json, MediumGrid> dump_video(VideoSource const& source, ImageOptions const& options) {
  auto const video = load_video(source, video_options(options));
  Json json = {{"video", true},
               {"seconds", video.seconds},
               {"resized_hw", {video.resized.height, video.resized.width}},
               {"grid_thw", thw(video.grid)},
               {"image_tokens", video.grid.tokens()},
               {"sha256_resized_rgb8", sha256(video.frames)}};
  return {std::move(json), MediumGrid{video.grid, true, video.seconds}};
}

std::string name_of_part(Part const& part) {
  if (auto const* const image = std::get_if<ImageSource>(&part)) return name_of(*image);
  auto const& video = std::get<VideoSource>(part);
  if (!video.path.empty()) return video.path;
  return text(video.frames.size(), " frames from ", name_of(video.frames.front()));
}

Json dump_pair(EncodedRow const& row, EncodedPair const& pair, RowReader const& reader,
               DumpPositions positions) {
  std::vector<Grid> grids;
  Json shapes = Json::array();
  for (auto const index : pair.media) {
    grids.push_back(row.media[static_cast<std::size_t>(index)].grid);
    shapes.push_back(thw(grids.back()));
  }
  Json json = {{"label", pair.label},
               {"input_ids", pair.ids},
               {"image_grid_thw", std::move(shapes)},
               {"images", pair.media},
               {"cut_tokens", pair.cut_tokens}};
  if (positions == DumpPositions::yes)
    json["position_ids"] = rope_positions(pair.ids, grids, reader.prompt_ids);
  return json;
}

void fill_accepted(Json& json, RowReader const& reader, ParsedRow const& parsed,
                   DumpPositions positions) {
  auto const& request = reader.request;
  auto const parts = media_of(parsed.sample);
  auto const in_query = [&](Part const* part) {
    auto const& query = parsed.sample.query;
    return !query.empty() && part >= query.data() && part < query.data() + query.size();
  };
  std::vector<MediumGrid> grids;
  Json images = Json::array();
  for (auto const* part : parts) {
    auto const* const image = std::get_if<ImageSource>(part);
    auto [figures, grid] = image != nullptr
                               ? dump_image(*image, request.image)
                               : dump_video(std::get<VideoSource>(*part), request.image);
    Json item = {{"source", name_of_part(*part)}, {"side", in_query(part) ? "query" : "document"}};
    item.update(figures);
    images.push_back(std::move(item));
    grids.push_back(std::move(grid));
  }
  auto const row = encode_row(parsed.sample, std::move(grids), *request.tokenizer,
                              reader.prompt_ids, request.encode);
  for (auto const& pair : row.pairs)
    json["pairs"].push_back(dump_pair(row, pair, reader, positions));
  json["images"] = std::move(images);
}

}  // namespace

VideoOptions video_options(ImageOptions const& options) {
  VideoOptions video;
  video.exif = options.exif;
  video.max_pixels = options.max_pixels;
  video.root = options.root;
  return video;
}

std::string dump_row(RowReader const& reader, std::string_view bytes, std::string const& file,
                     std::int64_t line, DumpPositions positions) {
  Json json = {{"file", file},
               {"line", line},
               {"status", "ok"},
               {"reason", ""},
               {"warnings", Json::array()},
               {"pairs", Json::array()},
               {"images", Json::array()}};
  try {
    auto const parsed = parse_row(bytes, file, line, reader.request.rows);
    json["warnings"] = parsed.warnings;
    fill_accepted(json, reader, parsed, positions);
  } catch (Error const& error) {
    if (error.code() != Exit::input) throw;
    json["status"] = "rejected";
    json["reason"] = error.summary();
    json["pairs"] = Json::array();
    json["images"] = Json::array();
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace vlrerank
