// encode_cases_test.cpp -- public bug reports about tokens and positions, by their id.
#include <algorithm>

#include "encode_support.hpp"

namespace vlrerank {
namespace {

using Ids = std::vector<std::int32_t>;

nlohmann::json expected(std::string const& id) {
  return read_json(test_data("cases/expected.json"))[id];
}

std::vector<Ids> ids_of(EncodedRow const& row) {
  std::vector<Ids> ids;
  for (auto const& pair : row.pairs) ids.push_back(pair.ids);
  return ids;
}

/// Ids of all pairs of all rows.
std::vector<Ids> ids_of(std::vector<EncodedRow> const& rows) {
  std::vector<Ids> ids;
  for (auto const& row : rows) {
    for (auto const& pair : row.pairs) ids.push_back(pair.ids);
  }
  return ids;
}

std::vector<Grid> grids_of_pair(EncodedRow const& row, EncodedPair const& pair) {
  std::vector<Grid> grids;
  for (auto const index : pair.media)
    grids.push_back(row.media[static_cast<std::size_t>(index)].grid);
  return grids;
}

TEST(EncodeCases, D01EmptyDocumentsAndQueries) {
  auto const lines = expected("D01")["lines"];
  auto const rows = encode_case("D01.jsonl");

  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pairs[0].ids, lines["1"]["pairs"][0]["input_ids"].get<Ids>());
  EXPECT_EQ(rows[0].pairs[1].ids, lines["1"]["pairs"][1]["input_ids"].get<Ids>());
  EXPECT_EQ(rows[1].pairs[1].ids, lines["3"]["pairs"][0]["input_ids"].get<Ids>());
  EXPECT_EQ(rows[2].pairs[0].ids, lines["4"]["pairs"][0]["input_ids"].get<Ids>());
  EXPECT_EQ(rows[2].pairs[1].ids, lines["4"]["pairs"][1]["input_ids"].get<Ids>());
}

TEST(EncodeCases, D05D06D10IdsOfOddLines) {
  auto const d05 = expected("D05")["expected"];
  auto const rows = ids_of(encode_case("D05.jsonl"));
  ASSERT_EQ(rows.size(), d05["pairs"]);
  EXPECT_EQ(rows.front(), d05["first_pair_ids"].get<Ids>());
  EXPECT_EQ(rows.back(), d05["last_pair_ids"].get<Ids>());

  EXPECT_EQ(ids_of(encode_case("D06.jsonl")),
            expected("D06")["expected"]["pair_ids"].get<std::vector<Ids>>());
  EXPECT_EQ(ids_of(encode_case("D10.jsonl")),
            expected("D10")["expected"]["pair_ids"].get<std::vector<Ids>>());
}

TEST(EncodeCases, D09ImagesStandOnTheirOwnSide) {
  auto const lines = expected("D09")["lines"];
  auto const rows = encode_case("D09.jsonl");

  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].pairs[0].ids, lines["2"]["positive_pair_ids"].get<Ids>());
  EXPECT_EQ(rows[1].pairs[0].ids, lines["3"]["positive_pair_ids"].get<Ids>());
}

TEST(EncodeCases, D11ConvertedFormsGiveTheSamePrompt) {
  auto const want = expected("D11")["expected"]["converted_ids_if_converted"];
  auto const rows = encode_case("D11_a.jsonl");

  EXPECT_EQ(rows.at(0).pairs[0].ids, want["a_first"].get<Ids>());
  EXPECT_EQ(rows.at(0).pairs[1].ids, want["a_second"].get<Ids>());
}

TEST(EncodeCases, D12AllShapesOfAMediaFieldAreOne) {
  auto const want = expected("D12")["expected"];
  auto const rows = encode_case("D12.jsonl");

  ASSERT_EQ(rows.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(rows[i].pairs[0].ids, want["ids_lines_1_to_5_positive"].get<Ids>()) << i;
  EXPECT_EQ(rows[5].pairs[0].ids, want["ids_line_6_first_positive"].get<Ids>());
}

TEST(EncodeCases, D15TheInstructionHasItsPlace) {
  auto const want = expected("D15")["expected"];
  auto const rows = encode_case("D15.jsonl");

  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(ids_of(rows[0]), want["line1"].get<std::vector<Ids>>());
  EXPECT_EQ(ids_of(rows[1]), want["line2"].get<std::vector<Ids>>());
  EXPECT_EQ(ids_of(rows[2]), want["line3"].get<std::vector<Ids>>());
}

TEST(EncodeCases, I17GridsFollowThePlaceholders) {
  auto const want = expected("I17")["expected"];
  auto const rows = encode_case("I17.jsonl");
  std::vector<std::vector<std::int32_t>> grids;
  for (auto const& row : rows) {
    for (auto const& pair : row.pairs) {
      for (auto const& grid : grids_of_pair(row, pair)) grids.push_back({grid.t, grid.h, grid.w});
    }
  }

  EXPECT_EQ(ids_of(rows), want["pair_ids"].get<std::vector<Ids>>());
  EXPECT_EQ(grids, want["image_grid_thw_in_order"].get<std::vector<std::vector<std::int32_t>>>());
}

TEST(EncodeCases, T04UserTextNeverClosesATurn) {
  auto const want = expected("T04")["expected"];
  auto const rows = encode_case("T04.jsonl");

  EXPECT_EQ(ids_of(rows), want["pair_ids"].get<std::vector<Ids>>());
  auto const& ids = rows.at(0).pairs[0].ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 151645), want["count_im_end_151645"]);
}

TEST(EncodeCases, T04ParsedOnRequestAsTheScriptDoes) {
  EncodeOptions options;
  options.special_strings = AddedTokens::parse;
  auto const rows = encode_case("T04.jsonl", options);
  auto const wrong = expected("T04")["wrong"]["parsed as special"];

  auto const& ids = rows.at(0).pairs[0].ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 151645), wrong["count_im_end_151645"]);
  EXPECT_EQ(ids.size(), wrong["length"]);
}

TEST(EncodeCases, T05LiteralMarkersAreNoPlaceholders) {
  auto const want = expected("T05")["expected"];
  auto const rows = encode_case("T05.jsonl");

  EXPECT_EQ(rows.at(0).pairs[0].ids, want["positive_ids"].get<Ids>());
  EncodeOptions options;
  options.special_strings = AddedTokens::parse;
  EXPECT_TRUE(encode_case("T05.jsonl", options).empty());  // 7 pads for 6 media tokens
}

TEST(EncodeCases, T09AbsentFieldsAddNothing) {
  auto const want = expected("T09")["expected"];
  auto const rows = encode_case("T09.jsonl");

  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(ids_of(rows[0]), want["line1"].get<std::vector<Ids>>());
  EXPECT_EQ(ids_of(rows[1]), want["line2"].get<std::vector<Ids>>());
  EXPECT_EQ(ids_of(rows[2]), want["line1"].get<std::vector<Ids>>());
}

TEST(EncodeCases, P01PositionsAfterPictures) {
  auto const want = expected("P01")["expected"];
  auto const rows = encode_case("P01.jsonl");
  auto const& pair = rows.at(0).pairs[0];

  auto const positions = rope_positions(pair.ids, grids_of_pair(rows[0], pair), prompt_ids());

  EXPECT_EQ(pair.ids, want["input_ids"].get<Ids>());
  EXPECT_EQ(positions[0], want["position_ids_t"].get<Ids>());
  EXPECT_EQ(positions[1], want["position_ids_h"].get<Ids>());
  EXPECT_EQ(positions[2], want["position_ids_w"].get<Ids>());
}

TEST(EncodeCases, P02EachPairOfAPackHasItsOwnPositions) {
  auto const want = expected("P02")["expected"];
  auto const row = encode_case("P02.jsonl").at(0);
  auto const last = encode_text("text only", {"doc"});
  Ids packed;
  std::array<Ids, 3> positions;
  auto const add = [&](EncodedPair const& pair, std::vector<Grid> const& grids) {
    packed.insert(packed.end(), pair.ids.begin(), pair.ids.end());
    auto const own = rope_positions(pair.ids, grids, prompt_ids());
    for (std::size_t axis = 0; axis < 3; ++axis)
      positions[axis].insert(positions[axis].end(), own[axis].begin(), own[axis].end());
  };

  for (auto const& pair : row.pairs) add(pair, grids_of_pair(row, pair));
  add(last.pairs[0], {});

  EXPECT_EQ(packed, want["packed_ids"].get<Ids>());
  for (std::size_t axis = 0; axis < 3; ++axis)
    EXPECT_EQ(positions[axis], want["position_ids_thw"][axis].get<Ids>());
}

}  // namespace
}  // namespace vlrerank
