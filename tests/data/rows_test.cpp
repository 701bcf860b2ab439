// rows_test.cpp -- every row form becomes the sample one would expect, and bad rows say why.
#include "data/rows.hpp"

#include "row_support.hpp"

namespace vlrerank {
namespace {

TEST(Rows, ReadsMsSwift4) {
  auto const row = parse(
      R"({"messages":[{"role":"system","content":"Find it."},{"role":"user","content":"<image>q"}],
          "images":["a.png"],"id":"x7",
          "positive_messages":[[{"role":"system","content":"Own."},{"role":"user","content":"p"}]],
          "negative_messages":[[{"role":"assistant","content":"n <image>"}],[{"role":"assistant","content":"m"}]],
          "negative_images":[["b.png"],[]]})");

  EXPECT_EQ(row.sample.form, "ms-swift");
  EXPECT_EQ(row.sample.instruction, "Find it.");
  EXPECT_EQ(row.sample.documents[0].instruction, "Own.");
  EXPECT_EQ(row.sample.documents[1].instruction, "");
  EXPECT_EQ(row.sample.id, "x7");
  EXPECT_EQ(shown(row.sample), "[/set/a.png]q | p=1 | n [/set/b.png]=0 | m=0");
  EXPECT_TRUE(row.warnings.empty());
}

TEST(Rows, ReadsContentParts) {
  auto const row = parse(swift_row(
      R"([{"type":"image","image":"a.png"},{"type":"text","text":"look "},{"type":"text","text":"here"}])",
      R"([{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"b.png"}}])",
      R"([{"type":"image"},{"type":"text","text":"y"}])", R"("negative_images":[["c.png"]])"));

  EXPECT_EQ(shown(row.sample), "[/set/a.png]look here | x[/set/b.png]=1 | [/set/c.png]y=0");
}

TEST(Rows, ReadsMsSwift3) {
  auto const row =
      parse(R"({"query":"q","response":"good","rejected_response":["bad","worse"],"system":"S"})");

  EXPECT_EQ(row.sample.form, "ms-swift-3");
  EXPECT_EQ(row.sample.instruction, "S");
  EXPECT_EQ(shown(row.sample), "q | good=1 | bad=0 | worse=0");
}

TEST(Rows, MsSwift3SharesItsImagesInTheOrderOfTheTags) {
  auto const row = parse(
      R"({"query":"q <image>","response":"<image>r","rejected_response":["<image>s"],"images":["1.png","2.png","3.png"]})");

  EXPECT_EQ(shown(row.sample), "q [/set/1.png] | [/set/2.png]r=1 | [/set/3.png]s=0");
  EXPECT_EQ(shown(parse(R"({"query":"q","response":"r","images":["1.png"]})").sample),
            "[/set/1.png]q | r=1");
}

TEST(Rows, ReadsFlagEmbedding) {
  auto const row = parse(R"({"query":"q","pos":["p"],"neg":["n1","n2"],"prompt":"I","type":"x"})");

  EXPECT_EQ(row.sample.form, "flagembedding");
  EXPECT_EQ(row.sample.instruction, "I");
  EXPECT_EQ(shown(row.sample), "q | p=1 | n1=0 | n2=0");
}

TEST(Rows, ReadsMteb) {
  auto const row = parse(
      R"({"query":"q","positive":["<image>p"],"negative":["n"],"positive_images":[["a.png"]],"instruction":"I"})");

  EXPECT_EQ(row.sample.form, "mteb");
  EXPECT_EQ(row.sample.instruction, "I");
  EXPECT_EQ(shown(row.sample), "q | [/set/a.png]p=1 | n=0");
}

TEST(Rows, ReadsQwensForm) {
  auto const row = parse(
      R"({"instruction":null,"query":{"text":["first,","second"],"image":"q.png"},
          "documents":[{"text":"d","image":["1.png","2.png"],"video":"v.mp4","label":0.25},
                       {"label":1}, {"video":[["f0.png","f1.png"]],"label":0}, {"text":"","label":0}]})");

  EXPECT_EQ(row.sample.form, "qwen");
  EXPECT_EQ(row.sample.instruction, "");
  EXPECT_EQ(shown(row.sample),
            "[/set/q.png]first,second | {/set/v.mp4}[/set/1.png][/set/2.png]d=0.25 | NULL=1 | "
            "{/set/f0.png;/set/f1.png;}=0 | =0");
}

TEST(Rows, ReadsFlatPairs) {
  EXPECT_EQ(shown(parse(R"({"query":"q","document":"d","label":0.5})").sample), "q | d=0.5");
  EXPECT_EQ(shown(parse(R"({"query":"q","document":"d","label":true})").sample), "q | d=1");
  auto const row = parse(
      R"({"query":{"image":"q.png"},"document":"see <image>","document_image":"d.png","label":0})");
  EXPECT_EQ(row.sample.form, "pair");
  EXPECT_EQ(shown(row.sample), "[/set/q.png] | see [/set/d.png]=0");
}

TEST(Rows, ScoreTakesDocumentsWithoutLabels) {
  RowOptions options;
  options.labels_required = false;
  options.duplicates = Duplicates::keep;

  auto const row = parse(R"({"query":"q","documents":["a","b","a"]})", options);

  EXPECT_EQ(shown(row.sample), "q | a=0 | b=0 | a=0");
  EXPECT_NE(reason(R"({"query":"q","documents":["a"]})").find("documents[0].label is missing"),
            std::string::npos);
  EXPECT_EQ(shown(parse(R"({"query":"q","documents":["a","b"],"labels":[1,0.5]})").sample),
            "q | a=1 | b=0.5");
}

TEST(Rows, MediaFieldsHaveOneNormalForm) {
  std::string const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+"
      "M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  for (std::string const field :
       {R"("a.png")", R"(["a.png"])", R"({"path":"a.png"})", R"([{"path":"a.png","bytes":null}])",
        R"(["file:///set/a.png"])", R"(["/set/a.png"])", R"([{"url":"a.png"}])"}) {
    auto const row = parse(swift_row(R"("<image>q")", R"("p")", R"("n")", "\"images\":" + field));
    EXPECT_EQ(shown(row.sample.query), "[/set/a.png]q") << field;
  }
  for (auto const& field : {"\"" + png + "\"", "[{\"bytes\":\"" + png + "\",\"path\":\"x.png\"}]",
                            "\"data:image/png;base64," + png + "\""}) {
    auto const row = parse(swift_row(R"("q")", R"("p")", R"("n")", "\"image\":" + field));
    EXPECT_EQ(shown(row.sample.query), "[bytes:\x89PNG\r\n\x1a\n]q") << field;
  }
}

TEST(Rows, RelativePathsStartAtTheImageRootWhenThereIsOne) {
  RowOptions options;
  options.image_root = "/pictures";
  auto const row = swift_row(R"("q")", R"("p")", R"("n")", R"("images":"x/a.png")");

  EXPECT_EQ(shown(parse(row, options).sample.query), "[/pictures/x/a.png]q");
  EXPECT_EQ(shown(parse_row(row, "-", 1, {}).sample.query), "[x/a.png]q");
  EXPECT_EQ(shown(parse_row(row, "rows.jsonl", 1, {}).sample.query), "[x/a.png]q");
}

TEST(Rows, VideosAreFilesOrFrames) {
  auto const shown_videos = [](std::string const& field) {
    return shown(
        parse(swift_row(R"("q <video>")", R"("p")", R"("n")", "\"videos\":" + field)).sample.query);
  };
  EXPECT_EQ(shown_videos(R"("v.mp4")"), "q {/set/v.mp4}");
  EXPECT_EQ(shown_videos(R"(["f0.jpg","f1.jpg"])"), "q {/set/f0.jpg;/set/f1.jpg;}");
  EXPECT_EQ(shown_videos(R"([["f0.jpg","f1.jpg"]])"), "q {/set/f0.jpg;/set/f1.jpg;}");
  EXPECT_EQ(shown_videos(R"({"frames":["f0.jpg"],"fps":4})"), "q {/set/f0.jpg;}");
  EXPECT_EQ(shown_videos(R"(["u.mp4","v.mp4"])"), "{/set/u.mp4}q {/set/v.mp4}");
}

TEST(Rows, OtherTagsCanBeChosen) {
  RowOptions options;
  options.image_tag = "[IMG]";

  auto const row =
      parse(swift_row(R"("[IMG]a <image>")", R"("p")", R"("n")", R"("images":"x.png")"), options);

  EXPECT_EQ(shown(row.sample.query), "[/set/x.png]a <image>");
}

TEST(Rows, RejectsWithOneClearLine) {
  auto const says = [](std::string const& json, std::string const& words) {
    auto const told = reason(json);
    EXPECT_NE(told.find(words), std::string::npos) << told << "\nfor " << json;
  };
  says(R"({"query":"q","document":"d","label":3})", "label is 3, outside [0, 1]");
  says(R"({"query":"q","document":"d","label":-0.1})", "outside [0, 1]");
  says(R"({"query":"q","document":"d","label":"1"})", "label is a string");
  says(R"({"query":"q","document":"d"})", "label is missing");
  says(R"({"query":null,"pos":["a"]})", "unknown row form");
  says(R"({"query":"q","pos":[null]})", "pos[0] is null");
  says(R"({"query":["a","b"],"pos":[7]})", "pos[0] is a number");
  says(R"({"query":"q","pos":[]})", "no documents");
  says(R"({"query":"q","documents":[{"txt":"d","label":1}]})",
       "none of text, image, video, but txt");
  says(R"({"query":"q","documents":[null]})", "documents[0]");
  says(R"({})", "keys none");
  says(R"(7)", "a number, not an object");
  says(swift_row("null", R"("p")", R"("n")"), "messages[0].content is null");
  says(swift_row("5", R"("p")", R"("n")"), "messages[0].content is a number");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("images":["http://x/y.png"])"), "web address");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("images":[null])"), "images[0] is null");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("images":[""])"), "images[0] is an empty path");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("images":[{"bytes":"%%"}])"), "not base64");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("positive_images":[["a"],["b"]])"),
       "2 entries for 1 document");
  says(swift_row(R"("q")", R"("p")", R"("n")", R"("audios":["a.wav"])"), "sound");
  says(
      R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"positive_messages":[]})",
      "more than one message");
  says(R"({"messages":[{"role":"user","content":"a"}],"positive_messages":["p"]})",
       "positive_messages[0] is a string");
  says(R"({"messages":[{"role":"user","content":"a"}],"positive_messages":[[]]})", "no message");
}

TEST(Rows, EqualDocumentsAreDroppedOrKept) {
  std::string const row = R"({"query":"q","pos":["a","b","a"],"neg":["b","c","c"]})";

  auto const dropped = parse(row);
  RowOptions options;
  options.duplicates = Duplicates::keep;
  auto const kept = parse(row, options);

  EXPECT_EQ(shown(dropped.sample), "q | a=1 | b=1 | c=0");
  EXPECT_EQ(dropped.conflicts, 1);
  EXPECT_EQ(dropped.duplicates, 2);
  EXPECT_EQ(dropped.warnings.size(), 3u);
  EXPECT_EQ(kept.sample.documents.size(), 6u);
  EXPECT_EQ(kept.conflicts, 1);
}

TEST(Rows, ACopyWithAHigherLabelWins) {
  EXPECT_EQ(
      shown(parse(R"({"query":"q","documents":[{"text":"a","label":0},{"text":"a","label":1}]})")
                .sample),
      "q | a=1");
}

}  // namespace
}  // namespace vlrerank
