// tokenizer_test.cpp -- ids equal those of the tokenizers package, and bad files are refused by
// name.
#include "tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

Tokenizer const& qwen() {
  static auto const tokenizer = Tokenizer::load(test_data("qwen3-tokenizer"));
  return tokenizer;
}

json read_json(std::filesystem::path const& path) {
  std::ifstream in(path);
  return json::parse(in);
}

std::vector<std::int32_t> plain(std::string_view text) {
  return qwen().encode(text, AddedTokens::plain);
}

TEST(Tokenizer, AgreesWithTheReferenceOnEveryString) {
  auto const cases = read_json(test_data("reference/tokenizer-cases.json"));
  ASSERT_GT(cases.size(), 300u);

  for (auto const& item : cases) {
    auto const text = item["text"].get<std::string>();
    EXPECT_EQ(qwen().encode(text, AddedTokens::parse), item["ids"].get<std::vector<std::int32_t>>())
        << item["category"] << ": " << item["text"];
  }
}

TEST(Tokenizer, T10AgreesOnTheStringsOfPublicReports) {
  auto const expected = read_json(test_data("cases/expected.json"))["T10"]["expected"];
  auto const strings = read_json(test_data("cases/files/T10_strings.json"));
  auto const& list = strings.is_array() ? strings : strings.begin().value();
  ASSERT_EQ(list.size(), expected.size());

  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(plain(list[i].get<std::string>()), expected[i].get<std::vector<std::int32_t>>()) << i;
  }
}

TEST(Tokenizer, T11KnowsItsSizeAndNeverExceedsIt) {
  auto const expected = read_json(test_data("cases/expected.json"))["T11"]["expected"];

  EXPECT_EQ(qwen().size(), expected["tokenizer_len"]);
  EXPECT_EQ(qwen().id("</think>"), expected["largest_special_id"].get<std::int32_t>());
}

TEST(Tokenizer, PlainTextNeverYieldsAnAddedToken) {
  std::string const marked = "a<|im_end|>\n<|im_start|>assistant\nyes<think></tool_call>";

  for (auto const id : plain(marked)) EXPECT_LT(id, 151643);
  EXPECT_EQ(qwen().decode(plain(marked)), marked);
}

TEST(Tokenizer, TakesTheLongestAddedToken) {
  EXPECT_EQ(qwen().encode("<|im_start|>", AddedTokens::parse), (std::vector<std::int32_t>{151644}));
  EXPECT_EQ(qwen().encode("x<|im_start|", AddedTokens::parse), plain("x<|im_start|"));
}

TEST(Tokenizer, DecodesWhatItEncoded) {
  for (std::string const text : {"", " a  b\r\n\t c", "12345",
                                 "\xE4\xBD\xA0\xE5\xA5\xBD, w\xC3\xB6rld!", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(qwen().decode(plain(text)), text);
  }
  EXPECT_THROW(qwen().decode(std::vector<std::int32_t>{151936}), Error);
  EXPECT_THROW(qwen().decode(std::vector<std::int32_t>{-1}), Error);
}

TEST(Tokenizer, TakesInvalidBytesAsReplacementCharacters) {
  EXPECT_EQ(plain("a\xFF"
                  "b"),
            plain("a\xEF\xBF\xBD"
                  "b"));
  EXPECT_EQ(plain("\xE4\xBD"), plain("\xEF\xBF\xBD\xEF\xBF\xBD"));
  EXPECT_EQ(plain("\xED\xA0\x80"), plain("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
  EXPECT_EQ(plain("\xC0\xAF"), plain("\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(Tokenizer, ShortAndLongPiecesAreMergedByTheSameRule) {
  // One piece of letters, longer and longer: the heap takes over from the scan on the way, and
  // tokens far from the end must not notice.
  std::string const word = "internationalisationandtokenisation";
  std::string longer;
  for (int i = 0; i < 8; ++i) longer += word;
  auto const whole = plain(longer);

  for (std::size_t bytes = 20; bytes < longer.size(); ++bytes) {
    auto const part = plain(longer.substr(0, bytes));
    std::size_t same = 0;
    while (same < part.size() && part[same] == whole[same]) ++same;
    EXPECT_GE(same + 6, part.size()) << bytes;
    EXPECT_EQ(qwen().decode(part), longer.substr(0, bytes));
  }
}

TEST(Tokenizer, LooksUpTokensAsTheFileWritesThem) {
  EXPECT_EQ(qwen().id("yes"), 9693);
  EXPECT_EQ(qwen().id("no"), 2152);
  EXPECT_EQ(qwen().id("\xC4\xA0hello"), 23811);  // a leading space is written as U+0120
  EXPECT_EQ(qwen().id("<|image_pad|>"), 151655);
  EXPECT_EQ(qwen().id("no such token"), std::nullopt);
  EXPECT_EQ(qwen().id(""), std::nullopt);
}

TEST(Tokenizer, ListsSpecialIdsInOrder) {
  auto const special = qwen().special_ids();

  ASSERT_EQ(special.size(), 14u);
  EXPECT_EQ(special.front(), 151643);
  EXPECT_EQ(special.back(), 151656);
}

TEST(Tokenizer, ThreadsGetTheSameIds) {
  auto const cases = read_json(test_data("reference/tokenizer-cases.json"));
  auto const fresh = Tokenizer::load(test_data("qwen3-tokenizer/tokenizer.json"));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;

  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (auto const& item : cases) {
        auto const ids = fresh.encode(item["text"].get<std::string>(), AddedTokens::parse);
        if (ids != item["ids"].get<std::vector<std::int32_t>>()) ++wrong[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

/// Writes a tokenizer.json and tells what loading it says.
class BadFile : public testing::Test {
 protected:
  json small() const {
    json vocabulary;
    int moved = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      bool const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      auto const c = printable ? byte : moved++;
      std::string utf8(1, static_cast<char>(c));
      if (c >= 0x80)
        utf8 = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
      vocabulary[utf8] = byte;
    }
    vocabulary["ab"] = 256;
    vocabulary["abc"] = 257;
    json const split = {{"type", "Split"},
                        {"pattern", {{"Regex", "\\p{L}+"}}},
                        {"behavior", "Isolated"},
                        {"invert", false}};
    json const bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    return {{"added_tokens", {{{"id", 258}, {"content", "<x>"}, {"special", true}}}},
            {"normalizer", {{"type", "NFC"}}},
            {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b", {"ab", "c"}}}}}};
  }
  std::string load(std::string const& content) const {
    auto const path = std::filesystem::path(testing::TempDir()) / "tokenizer_bad.json";
    std::ofstream(path, std::ios::binary) << content;
    try {
      Tokenizer::load(path);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input);
      EXPECT_NE(error.summary().find("tokenizer_bad.json"), std::string::npos) << error.summary();
      return error.summary();
    }
    return "";
  }
};

TEST_F(BadFile, ASmallOneOfTheSameKindIsTaken) {
  auto const path = std::filesystem::path(testing::TempDir()) / "tokenizer_small.json";
  std::ofstream(path) << small();
  auto const tokenizer = Tokenizer::load(path);

  EXPECT_EQ(tokenizer.encode("abcab<x>", AddedTokens::parse),
            (std::vector<std::int32_t>{257, 256, 258}));
  EXPECT_EQ(tokenizer.size(), 259);
}

TEST_F(BadFile, SaysWhatIsWrong) {
  auto other = small();
  other["model"]["type"] = "Unigram";
  EXPECT_NE(load(other.dump()).find("Unigram"), std::string::npos);

  other = small();
  other["normalizer"]["type"] = "NFKC";
  EXPECT_NE(load(other.dump()).find("NFKC"), std::string::npos);

  other = small();
  other["pre_tokenizer"] = {{"type", "Whitespace"}};
  EXPECT_NE(load(other.dump()).find("pre-tokeniser"), std::string::npos);

  other = small();
  other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(";
  EXPECT_NE(load(other.dump()).find("expression"), std::string::npos);

  other = small();
  other["model"]["merges"].push_back("q w");
  EXPECT_NE(load(other.dump()).find("merge 2"), std::string::npos);

  other = small();
  other["model"]["vocab"].erase("a");
  EXPECT_NE(load(other.dump()).find("byte 97"), std::string::npos);

  other = small();
  other["model"].erase("vocab");
  EXPECT_NE(load(other.dump()).find("vocab"), std::string::npos);

  auto const good = small().dump();
  EXPECT_NE(load(good.substr(0, good.size() / 2)).find("not valid JSON"), std::string::npos);
  EXPECT_NE(load("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(load("[]").find("model"), std::string::npos);
  EXPECT_NE(load("{\"model\": {\"vocab\": [1]}}").find("model"), std::string::npos);
}

TEST_F(BadFile, AMissingFileIsNamed) {
  try {
    Tokenizer::load("/nowhere/tokenizer.json");
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_NE(error.summary().find("/nowhere/tokenizer.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace vlrerank
