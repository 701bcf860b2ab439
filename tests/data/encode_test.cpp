// encode_test.cpp -- truncation, shared prefixes and positions on samples made for the purpose.
#include "data/encode.hpp"

#include <algorithm>

#include "encode_support.hpp"

namespace vlrerank {
namespace {

using Ids = std::vector<std::int32_t>;

std::string words(std::string const& word, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? " " : "") + word;
  return out;
}

std::string decoded(Ids const& ids) {
  return qwen().decode(ids);
}

bool ends_as_a_prompt_does(Ids const& ids) {
  return decoded(ids).ends_with("<|im_end|>\n<|im_start|>assistant\n");
}

EncodeOptions limited(std::int32_t max_length) {
  EncodeOptions options;
  options.max_length = max_length;
  return options;
}

/// One picture of h x w patches.
MediumGrid picture(std::int32_t h, std::int32_t w) {
  return {{1, h, w}, false, {}};
}

Part image(std::string const& path) {
  return ImageSource{path, ""};
}

TEST(Truncation, ExactlyFittingRowsAreLeftAlone) {
  auto const full = encode_text("query", {words("harbour", 50)});
  auto const length = static_cast<std::int32_t>(full.pairs[0].ids.size());

  EXPECT_EQ(encode_text("query", {words("harbour", 50)}, limited(length)).pairs[0].ids,
            full.pairs[0].ids);
  EXPECT_EQ(encode_text("query", {words("harbour", 50)}, limited(length - 1)).pairs[0].cut_tokens,
            1);
}

TEST(Truncation, CutsTheDocumentsTailAlone) {
  auto const full = encode_text("what is sold?", {words("harbour", 200)}).pairs[0].ids;
  for (std::int32_t const limit : {100, 101, 150}) {
    auto const pair =
        encode_text("what is sold?", {words("harbour", 200)}, limited(limit)).pairs[0];

    EXPECT_EQ(pair.ids.size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(pair.cut_tokens, static_cast<std::int32_t>(full.size()) - limit);
    EXPECT_TRUE(ends_as_a_prompt_does(pair.ids));
    EXPECT_TRUE(std::equal(pair.ids.begin(), pair.ids.end() - 5, full.begin()));
  }
}

TEST(Truncation, NeverLeavesHalfACharacter) {
  std::string rare;  // characters of three tokens each
  for (int i = 0; i < 60; ++i) rare += "\xF0\x9F\xAB\xA9";
  auto const full = static_cast<std::int32_t>(encode_text("q", {rare}).pairs[0].ids.size());

  for (std::int32_t limit = full - 8; limit < full; ++limit) {
    auto const prompt = decoded(encode_text("q", {rare}, limited(limit)).pairs[0].ids);
    auto const end = prompt.find("<|im_end|>", prompt.find("<Document>:"));
    EXPECT_EQ((end - prompt.find("<Document>:") - 11) % 4, 0u) << limit;
  }
}

TEST(Truncation, ThenTheQuerysTailKeepingSixteenDocumentTokens) {
  auto const pair =
      encode_text(words("query", 300) + "?", {words("harbour", 200)}, limited(140)).pairs[0];
  auto const prompt = decoded(pair.ids);

  EXPECT_LE(pair.ids.size(), 140u);
  EXPECT_GE(pair.ids.size(), 138u);
  EXPECT_TRUE(ends_as_a_prompt_does(pair.ids));
  auto const document = prompt.substr(prompt.find("<Document>:") + 11);
  EXPECT_TRUE(document.starts_with(words("harbour", 8))) << document;
  auto const kept = document.substr(0, document.find("<|im_end|>"));
  auto const tokens = qwen().encode(kept, AddedTokens::plain).size();
  EXPECT_GE(tokens, 15u);
  EXPECT_LE(tokens, 17u);
  EXPECT_NE(prompt.find("<Query>:query query"), std::string::npos);
  EXPECT_NE(prompt.find("answer the query.<Query>:"), std::string::npos);
}

TEST(Truncation, AShortDocumentIsKeptWhole) {
  auto const pair = encode_text(words("query", 300), {"tin is a metal"}, limited(120)).pairs[0];

  EXPECT_LE(pair.ids.size(), 120u);
  EXPECT_NE(decoded(pair.ids).find("<Document>:tin is a metal<|im_end|>"), std::string::npos);
}

TEST(Truncation, TheSameTemplateRemainsWhenAllTextGoes) {
  auto const empty = encode_text("", {""}).pairs[0].ids;
  auto const least = static_cast<std::int32_t>(empty.size());

  auto const pair =
      encode_text(words("query", 99), {words("harbour", 99)}, limited(least)).pairs[0];

  EXPECT_EQ(pair.ids, empty);
  EXPECT_THROW(encode_text("q", {"d"}, limited(least - 1)), Error);
}

TEST(Truncation, MediaStayAndTextOnBothSidesOfThemIsCutFromTheEnd) {
  Sample sample;
  sample.query.emplace_back("a red rectangle");
  sample.documents.push_back({{words("before", 30), image("x.png"), words("after", 30)}, 1, ""});
  auto const full = encode_row(sample, {picture(10, 12)}, qwen(), prompt_ids(), {});
  auto const length = static_cast<std::int32_t>(full.pairs[0].ids.size());

  auto const little =
      encode_row(sample, {picture(10, 12)}, qwen(), prompt_ids(), limited(length - 10));
  auto const much =
      encode_row(sample, {picture(10, 12)}, qwen(), prompt_ids(), limited(length - 42));

  EXPECT_TRUE(std::equal(little.pairs[0].ids.begin(), little.pairs[0].ids.end() - 5,
                         full.pairs[0].ids.begin()));
  auto const& ids = much.pairs[0].ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), prompt_ids().image_pad), 30);
  EXPECT_EQ(decoded(ids).find("after"), std::string::npos);
  EXPECT_NE(decoded(ids).find("before before"), std::string::npos);
}

TEST(Truncation, MediaThatAloneDoNotFitRejectTheRow) {
  Sample sample;
  sample.query.push_back(image("x.png"));
  sample.documents.push_back({{std::string("d")}, 1, ""});
  try {
    encode_row(sample, {picture(40, 40)}, qwen(), prompt_ids(), limited(300));
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_NE(error.summary().find("300"), std::string::npos);
  }
}

TEST(Truncation, TheScriptKeepsSpecialTokensAndTheFront) {
  auto options = limited(96);
  options.truncation = Truncation::script;

  auto const pair = encode_text("which fish?", {words("harbour", 200)}, options).pairs[0];

  EXPECT_EQ(pair.ids.size(), 101u);
  EXPECT_TRUE(ends_as_a_prompt_does(pair.ids));
}

TEST(Prefix, EndsWhereTheDocumentsBegin) {
  auto const row = encode_text("red bicycle", {"blue car", "green tree", "blue bus"});

  auto const& ids = row.pairs[0].ids;
  EXPECT_TRUE(decoded(Ids(ids.begin(), ids.begin() + row.prefix_end)).ends_with("<Document>:"));
  for (auto const& pair : row.pairs)
    EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + row.prefix_end, pair.ids.begin()));
  EXPECT_EQ(encode_text("q", {"only one"}).prefix_end, 0);
}

TEST(Prefix, LeavesEachPairItsLastToken) {
  auto const row = encode_text("q", {"same", "same"});

  EXPECT_EQ(row.prefix_end, static_cast<std::int32_t>(row.pairs[0].ids.size()) - 1);
}

TEST(Prefix, DifferentPicturesOfOneSizeAreNotShared) {
  Sample sample;
  sample.query.push_back(image("query.png"));
  sample.documents.push_back({{image("a.png"), std::string("x")}, 1, ""});
  sample.documents.push_back({{image("b.png"), std::string("x")}, 0, ""});

  auto const row =
      encode_row(sample, {picture(4, 4), picture(4, 6), picture(4, 6)}, qwen(), prompt_ids(), {});

  EXPECT_EQ(row.pairs[0].ids, row.pairs[1].ids);
  EXPECT_EQ(row.pairs[0].media, (Ids{0, 1}));
  EXPECT_EQ(row.pairs[1].media, (Ids{0, 2}));
  auto const& ids = row.pairs[0].ids;
  auto const prefix = Ids(ids.begin(), ids.begin() + row.prefix_end);
  EXPECT_EQ(std::count(prefix.begin(), prefix.end(), prompt_ids().image_pad), 4);
  EXPECT_TRUE(decoded(prefix).ends_with("<Document>:<|vision_start|>"));
}

TEST(Prefix, NeverEndsInsideAPicture) {
  Sample sample;
  sample.query.emplace_back("q");
  sample.documents.push_back({{image("a.png")}, 1, ""});
  sample.documents.push_back({{image("b.png")}, 0, ""});

  auto const row = encode_row(sample, {picture(4, 4), picture(8, 8)}, qwen(), prompt_ids(), {});

  auto const& ids = row.pairs[0].ids;
  EXPECT_NE(ids[static_cast<std::size_t>(row.prefix_end) - 1], prompt_ids().image_pad);
}

TEST(Prefix, AVideoIsSharedWholeOrNotAtAll) {
  Sample sample;
  sample.query.push_back(VideoSource{"v.mp4", {}, 0});
  sample.documents.push_back({{std::string("a")}, 1, ""});
  sample.documents.push_back({{std::string("b")}, 0, ""});
  MediumGrid const video{{2, 4, 4}, true, {0.25, 1.25}};

  auto const row = encode_row(sample, {video}, qwen(), prompt_ids(), {});

  auto const prompt = decoded(row.pairs[0].ids);
  EXPECT_NE(prompt.find("<Query>:<0.2 seconds><|vision_start|><|video_pad|><|video_pad|>"),
            std::string::npos);
  EXPECT_NE(prompt.find("<|vision_end|><1.2 seconds><|vision_start|>"), std::string::npos);
  auto const& ids = row.pairs[0].ids;
  auto const prefix = Ids(ids.begin(), ids.begin() + row.prefix_end);
  EXPECT_EQ(std::count(prefix.begin(), prefix.end(), prompt_ids().video_pad), 8);
}

TEST(Encode, MergesAcrossTheSeams) {
  auto const row = encode_text("same?", {"doc"});

  auto const& ids = row.pairs[0].ids;
  EXPECT_NE(std::find(ids.begin(), ids.end(), 5267), ids.end());  // "?\n" is one token
}

TEST(Encode, GridsMustMatchTheMedia) {
  Sample sample;
  sample.query.push_back(image("a.png"));
  EXPECT_THROW(encode_row(sample, {}, qwen(), prompt_ids(), {}), Error);
}

TEST(Positions, IdsAndGridsMustBelongTogether) {
  auto const pad = prompt_ids().image_pad;
  EXPECT_THROW(rope_positions({1, pad, pad}, {}, prompt_ids()), Error);
  EXPECT_THROW(rope_positions({1, pad, pad, 2}, {{1, 4, 4}}, prompt_ids()), Error);
  EXPECT_THROW(rope_positions({1, 2}, {{1, 4, 4}}, prompt_ids()), Error);
}

}  // namespace
}  // namespace vlrerank
