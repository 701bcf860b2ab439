// row_cases_test.cpp -- public bug reports about rows, by their id in tests/data/cases.
#include <fstream>
#include <nlohmann/json.hpp>

#include "row_support.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

/// What became of every line of a case's file.
struct CaseRows {
  std::vector<std::int64_t> ok;
  std::vector<ParsedRow> rows;  ///< of the lines in `ok`
  std::vector<std::int64_t> rejected;
  std::vector<std::string> reasons;
};

CaseRows read_case(std::string const& file) {
  CaseRows read;
  auto const path = test_data("cases/files/" + file).string();
  for_each_line(path, [&](std::int64_t line, std::string_view bytes) {
    try {
      read.rows.push_back(parse_row(bytes, path, line, {}));
      read.ok.push_back(line);
    } catch (Error const& error) {
      read.rejected.push_back(line);
      read.reasons.push_back(error.summary());
    }
  });
  return read;
}

json expected(std::string const& id) {
  std::ifstream in(test_data("cases/expected.json"));
  return json::parse(in)[id];
}

using Lines = std::vector<std::int64_t>;

TEST(RowCases, D01NullContentIsRejectedAndEmptyIsLegal) {
  auto const read = read_case("D01.jsonl");

  EXPECT_EQ(read.ok, (Lines{1, 3, 4}));
  EXPECT_NE(read.reasons.at(0).find("null"), std::string::npos);
  EXPECT_NE(read.reasons.at(0).find("content"), std::string::npos);
  EXPECT_EQ(shown(read.rows[0].sample), "red bicycle | a red bike=1 | =0");
}

TEST(RowCases, D02PositivesAloneAreLegal) {
  auto const read = read_case("D02.jsonl");

  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[0].sample.documents.size() + read.rows[1].sample.documents.size(), 3u);
  for (auto const& row : read.rows) {
    ASSERT_EQ(row.warnings.size(), 1u);
    EXPECT_NE(row.warnings[0].find("negative"), std::string::npos);
  }
}

TEST(RowCases, D04EachLineIsReadOnItsOwn) {
  auto const read = read_case("D04.jsonl");
  auto const want = expected("D04")["expected"];

  ASSERT_EQ(read.rows.size(), want["lines_ok"]);
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    auto const& sample = read.rows[i].sample;
    auto const media = [](Side const& side) {
      int count = 0;
      for (auto const& part : side) count += std::holds_alternative<ImageSource>(part) ? 1 : 0;
      return count;
    };
    for (std::size_t d = 0; d < 2; ++d) {
      EXPECT_EQ(media(sample.query) + media(sample.documents[d].content),
                want["images_per_pair"][i][d]);
    }
  }
}

TEST(RowCases, D05MarksAndCarriageReturnsAreNoText) {
  auto const read = read_case("D05.jsonl");

  ASSERT_EQ(read.ok, (Lines{1, 2, 3}));
  EXPECT_EQ(shown(read.rows[2].sample), "gamma | pos gamma=1 | neg gamma=0");
}

TEST(RowCases, D06OnlyLineFeedsEndALine) {
  auto const read = read_case("D06.jsonl");

  ASSERT_EQ(read.ok, (Lines{1, 2}));
  EXPECT_EQ(shown(read.rows[0].sample.documents[0].content), "first\xE2\x80\xA8second");
}

TEST(RowCases, D08DuplicatesAreCountedAndDropped) {
  auto const read = read_case("D08.jsonl");
  auto const want = expected("D08")["expected"];
  std::int32_t conflicts = 0;
  std::int32_t duplicates = 0;
  std::vector<int> negatives;

  for (auto const& row : read.rows) {
    conflicts += row.conflicts;
    duplicates += row.duplicates;
    negatives.push_back(0);
    for (auto const& document : row.sample.documents)
      negatives.back() += document.label == 0 ? 1 : 0;
  }

  EXPECT_EQ(conflicts, want["positive_negative_conflicts"]);
  EXPECT_EQ(duplicates, want["duplicate_negatives"]);
  EXPECT_EQ(negatives, want["negatives_after_default_cleaning"].get<std::vector<int>>());
}

TEST(RowCases, D09TagsAndImagesMustAgreeOnEachSide) {
  auto const read = read_case("D09.jsonl");

  EXPECT_EQ(read.ok, (Lines{2, 3}));
  EXPECT_EQ(read.rejected, (Lines{1, 4}));
  for (auto const& told : read.reasons) {
    for (auto const* const word : {"image", "2", "1"})
      EXPECT_NE(told.find(word), std::string::npos);
  }
  auto const& document = read.rows[0].sample.documents[0].content;
  EXPECT_TRUE(std::holds_alternative<ImageSource>(document.at(0)));
}

TEST(RowCases, D10TagsWithoutMediaStayText) {
  auto const read = read_case("D10.jsonl");

  EXPECT_EQ(shown(read.rows.at(0).sample.documents[0].content),
            "Use <video> and <audio>; inside SVG use <image> with href.");
}

TEST(RowCases, D11OlderFormsAreConvertedOrNamed) {
  EXPECT_EQ(shown(read_case("D11_a.jsonl").rows.at(0).sample),
            "q | good doc=1 | bad doc=0 | worse doc=0");
  EXPECT_EQ(shown(read_case("D11_b.jsonl").rows.at(0).sample), "q | good doc=1 | bad doc=0");
  EXPECT_NE(read_case("D11_c.jsonl").reasons.at(0).find("positive_messages"), std::string::npos);
}

TEST(RowCases, D12MediaFieldsOfEveryShape) {
  auto const read = read_case("D12.jsonl");
  auto const want = expected("D12")["expected"];

  EXPECT_EQ(read.ok, want["ok_lines"].get<Lines>());
  EXPECT_EQ(read.rejected, want["rejected_lines"].get<Lines>());
}

TEST(RowCases, D15InstructionsAndTheirPriority) {
  auto const read = read_case("D15.jsonl");

  EXPECT_EQ(read.rows.at(0).sample.instruction, "");
  EXPECT_EQ(read.rows.at(1).sample.instruction, "Find the matching invoice.");
  EXPECT_EQ(read.rows.at(2).sample.documents[0].instruction, "Find the matching receipt.");
  EXPECT_EQ(read.rows.at(2).sample.documents[1].instruction, "");
}

TEST(RowCases, D16EveryBadLineIsNamed) {
  auto const read = read_case("D16.jsonl");
  auto const want = expected("D16")["expected"];

  EXPECT_EQ(read.ok, want["good_lines"].get<Lines>());
  EXPECT_EQ(read.rejected, want["bad_lines"].get<Lines>());
  EXPECT_NE(read.reasons[0].find("not valid JSON"), std::string::npos) << read.reasons[0];
  EXPECT_NE(read.reasons[3].find("array"), std::string::npos) << read.reasons[3];
  EXPECT_NE(read.reasons[4].find("UTF-8"), std::string::npos) << read.reasons[4];
}

TEST(RowCases, T09NothingIsEverWrittenAsNone) {
  auto const read = read_case("T09.jsonl");

  ASSERT_EQ(read.rows.size(), 3u);
  EXPECT_EQ(read.rows[1].sample.query.size(), 1u);
  EXPECT_EQ(shown(read.rows[2].sample), shown(read.rows[0].sample));
  EXPECT_EQ(read.rows[2].sample.instruction, "");
}

}  // namespace
}  // namespace vlrerank
