// split_test.cpp -- the hand-written splitter and PCRE2 cut alike; normalising keeps its promises.
#include "tokenizer/split.hpp"

#include <gtest/gtest.h>

#include <random>

namespace vlrerank {
namespace {

std::vector<std::string_view> by_hand(std::string_view text) {
  std::vector<std::string_view> pieces;
  split_qwen(text, code_classes(), [&](std::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

TEST(Split, ByHandAndByPcreAreEqualOnRandomText) {
  SplitPattern const pattern{std::string(kQwenPattern)};
  std::vector<std::string> const alphabet = {
      "a",
      "B",
      "s",
      "S",
      "t",
      "re",
      "LL",
      "d",
      "0",
      "7",
      " ",
      " ",
      " ",
      "\n",
      "\r",
      "\t",
      ".",
      ",",
      "'",
      "'",
      "\"",
      "-",
      "_",
      "<",
      "|",
      ">",
      "\xC3\xA9",
      "\xCC\x81",          // a combining acute
      "\xE4\xB8\xAD",      // a Chinese character
      "\xF0\x9F\x98\x80",  // an emoji
      "\xC2\xA0",          // a no-break space
      "\xE3\x80\x80",      // an ideographic space
      "\xC5\xBF",          // the long s
      "\xE2\x80\xA8",      // a line separator
      "\xC2\x85",          // next line
      "\xD9\xA1",          // an Arabic digit
      "\xC2\xBD",          // one half
  };
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    auto const length = random() % 24;
    for (unsigned i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
    std::vector<std::string_view> expected;
    pattern.split(text, expected);

    ASSERT_EQ(by_hand(text), expected) << text;
  }
}

TEST(Split, KeepsEveryByte) {
  std::string const text = "It's 2024,\r\n  don't\t\tSTOP!!\n\n (a)  ";

  std::string joined;
  for (auto const piece : by_hand(text)) joined += piece;

  EXPECT_EQ(joined, text);
}

TEST(Split, ReturnsWhatStandsBetweenMatches) {
  SplitPattern const words{"[a-z]+"};
  std::vector<std::string_view> pieces;

  words.split("12ab,c", pieces);

  EXPECT_EQ(pieces, (std::vector<std::string_view>{"12", "ab", ",", "c"}));
}

TEST(Nfc, LeavesComposedTextUncopied) {
  std::string storage;
  std::string const text = "caf\xC3\xA9 \xE4\xBD\xA0";

  EXPECT_EQ(nfc(text, storage).data(), text.data());
}

TEST(Nfc, ComposesAndReordersMarks) {
  std::string storage;

  EXPECT_EQ(nfc("cafe\xCC\x81!", storage), "caf\xC3\xA9!");
  EXPECT_EQ(nfc("s\xCC\x87\xCC\xA3", storage), "\xE1\xB9\xA9");  // dot above, dot below
  EXPECT_EQ(nfc("\xE2\x84\xAB"
                "x",
                storage),
            "\xC3\x85x");  // the Angstrom sign
  EXPECT_EQ(nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", storage), "\xED\x95\x9C");  // Hangul
  EXPECT_EQ(nfc("\xCC\x81 x", storage), "\xCC\x81 x");
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(valid_utf8_prefix("abc"), 3u);
  EXPECT_EQ(valid_utf8_prefix("12345678\xE4\xBD\xA0\xF0\x9F\x98"), 11u);
  EXPECT_EQ(valid_utf8_prefix("\xF4\x90\x80\x80"), 0u);
}

}  // namespace
}  // namespace vlrerank
