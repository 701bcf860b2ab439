// golden_test.cpp -- ids and positions of the 20 golden cases, exact. The samples are read as rows
// of Qwen's form, so that form is tested with them.
#include <algorithm>
#include <cstring>

#include "encode_support.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

/// The int64 tensors of a safetensors file, flat.
class Golden {
 public:
  explicit Golden(std::filesystem::path const& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), 8);
    header_ = json::parse(bytes_.substr(8, length));
    data_ = 8 + length;
  }
  std::vector<std::int64_t> flat(std::string const& name) const {
    auto const& offsets = header_.at(name)["data_offsets"];
    std::size_t const begin = offsets[0];
    std::size_t const end = offsets[1];
    std::vector<std::int64_t> values((end - begin) / 8);
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }

 private:
  std::string bytes_;
  json header_;
  std::size_t data_ = 0;
};

/// The values of row `row` where its mask is 1. @param axis  of [3, rows, tokens]; 0 for [rows,
/// tokens]
std::vector<std::int32_t> real_tokens(Golden const& golden, std::string const& name,
                                      std::size_t axis, std::size_t row, std::size_t rows) {
  auto const mask = golden.flat("attention_mask");
  auto const values = golden.flat(name);
  auto const length = mask.size() / rows;
  std::vector<std::int32_t> kept;
  for (std::size_t i = 0; i < length; ++i) {
    if (mask[row * length + i] != 0)
      kept.push_back(static_cast<std::int32_t>(values[(axis * rows + row) * length + i]));
  }
  return kept;
}

TEST(Golden, IdsAndPositionsAreThoseOfTheReference) {
  auto const index = read_json(test_data("reference/cases/index.json"));
  EXPECT_EQ(prompt_ids().yes, index["yes_id"]);
  EXPECT_EQ(prompt_ids().no, index["no_id"]);
  std::size_t compared = 0;

  for (auto const& item : index["cases"]) {
    auto const name = item["name"].get<std::string>();
    Golden const golden(test_data("reference/cases/" + item["file"].get<std::string>()));
    auto const& grids = item[name.starts_with("video") ? "video_grid_thw" : "image_grid_thw"];
    std::size_t next_grid = 0;
    for (std::size_t row = 0; row < item["samples"].size(); ++row) {
      auto const& golden_sample = item["samples"][row];
      json const line = {{"instruction", golden_sample["instruction"]},
                         {"query", golden_sample["query"]},
                         {"documents", {golden_sample["document"]}},
                         {"labels", {1}}};
      auto const sample = parse_row(line.dump(), "/x/rows.jsonl", 1, {}).sample;
      std::vector<MediumGrid> media;
      for (auto const* part : media_of(sample)) {
        auto const& thw = grids[next_grid++];
        MediumGrid medium{{thw[0], thw[1], thw[2]}, std::holds_alternative<VideoSource>(*part), {}};
        for (int pair = 0; medium.video && pair < medium.grid.t; ++pair)
          medium.seconds.push_back((2 * pair + 0.5) /
                                   2.0);  // frames 2 pair and 2 pair + 1 at 2 fps
        media.push_back(medium);
      }
      EncodeOptions options;
      options.truncation = Truncation::script;
      options.special_strings = AddedTokens::parse;
      options.max_length = golden_sample["max_length"];

      auto const encoded = encode_row(sample, media, qwen(), prompt_ids(), options);

      auto const& pair = encoded.pairs.at(0);
      auto const rows = item["samples"].size();
      EXPECT_EQ(pair.ids, real_tokens(golden, "input_ids", 0, row, rows)) << name;
      EXPECT_EQ(pair.cut_tokens, golden_sample["tokens_before_truncation"].get<int>() -
                                     golden_sample["tokens"].get<int>());
      std::vector<Grid> pair_grids;
      for (auto const& medium : media) pair_grids.push_back(medium.grid);
      auto const positions = rope_positions(pair.ids, pair_grids, prompt_ids());
      for (std::size_t axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(positions[axis], real_tokens(golden, "position_ids", axis, row, rows)) << name;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 24u);
}

}  // namespace
}  // namespace vlrerank
