// prepare/sources.cpp -- samples are drawn by counting hash values, so they depend on no history.
#include "prepare/sources.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "io/files.hpp"

namespace vlrerank {
namespace {

/// A bijection of 64 bits that mixes well (the finaliser of SplitMix64).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Source parse_source(std::string const& input) {
  Source source{input, -1, 0, 0};
  auto const mark = input.rfind('#');
  if (mark != std::string::npos && !std::filesystem::exists(input)) {
    auto const digits = std::string_view(input).substr(mark + 1);
    auto const [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), source.wanted);
    VLR_USAGE(code == std::errc() && end == digits.data() + digits.size() && source.wanted > 0,
              text("--dataset ", input, ": no file of that name, and \"", digits,
                   "\" is not a number of rows"),
              "write path, or path#count with a count of at least 1");
    source.path = input.substr(0, mark);
  }
  return source;
}

std::string sources_json(std::vector<Source> const& sources, RowOptions const& rows,
                         std::uint64_t seed) {
  using Json = nlohmann::ordered_json;
  auto const& [image_root, image_tag, video_tag, duplicates, labels_required] = rows;
  Json files = Json::array();
  for (auto const& source : sources) {
    Json file = {{"path", source.path}, {"bytes", source.bytes}, {"xxh3", hex(source.xxh3)}};
    if (source.wanted >= 0) {
      file["sample"] = source.wanted;
      file["seed"] = seed;
    }
    files.push_back(std::move(file));
  }
  Json const json = {{"files", files},
                     {"rows",
                      {{"image_root", image_root},
                       {"image_tag", image_tag},
                       {"video_tag", video_tag},
                       {"duplicates", duplicates == Duplicates::keep ? "keep" : "drop"},
                       {"labels_required", labels_required}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t count_rows(std::string const& path) {
  std::int64_t count = 0;
  for_each_line(path, [&](std::int64_t, std::string_view) { ++count; });
  return count;
}

std::vector<bool> sample_rows(std::int64_t total, std::int64_t wanted, std::uint64_t seed,
                              std::uint64_t number) {
  auto const size = static_cast<std::size_t>(total);
  if (wanted < 0 || wanted >= total) return std::vector<bool>(size, true);
  // The rows with the smallest hashes; ties cannot be, mix() is a bijection of row + constant.
  auto const start = mix(seed ^ mix(number));
  std::vector<std::uint64_t> hashes(size);
  for (std::size_t row = 0; row < size; ++row) hashes[row] = mix(start + row);
  auto limit = hashes;
  std::nth_element(limit.begin(), limit.begin() + wanted, limit.end());
  auto const first_left_out = limit[static_cast<std::size_t>(wanted)];
  std::vector<bool> chosen(size);
  for (std::size_t row = 0; row < size; ++row) chosen[row] = hashes[row] < first_left_out;
  return chosen;
}

void for_each_row(std::vector<Source> const& sources, std::vector<std::int64_t> const& totals,
                  std::uint64_t seed, RowVisit const& visit) {
  std::int64_t position = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const& source = sources[i];
    auto const chosen = sample_rows(totals[i], source.wanted, seed, i);
    std::size_t row = 0;
    for_each_line(source.path, [&](std::int64_t line, std::string_view bytes) {
      VLR_INPUT(row < chosen.size(), text(source.path, " grew while it was read"),
                "leave the file alone while the job runs");
      if (chosen[row++]) visit(position++, source, line, bytes);
    });
  }
}

}  // namespace vlrerank
