// prepare/parts_test.cpp -- what prepare decides on one rank: samples, cuts, caches, limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "prepare/blocks.hpp"
#include "prepare/prepare.hpp"
#include "prepare/publish.hpp"
#include "support.hpp"
#include "support/small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

PrepareResult run(PrepareRequest const& request) {
  auto const control = make_self_communicator(at::kCPU);
  return prepare(request, *control);
}

Error refusal(PrepareRequest const& request) {
  try {
    run(request);
  } catch (Error const& error) {
    return error;
  }
  return Error(Exit::done, "nothing was refused", "", "");
}

TEST(SampleRows, DrawsTheCountThatIsAskedForBySeedAlone) {
  auto const chosen = sample_rows(1000, 100, 7, 0);

  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), true), 100);
  EXPECT_EQ(chosen, sample_rows(1000, 100, 7, 0));
  EXPECT_NE(chosen, sample_rows(1000, 100, 8, 0));
  EXPECT_NE(chosen, sample_rows(1000, 100, 7, 1));
  auto const half = std::count(chosen.begin(), chosen.begin() + 500, true);
  EXPECT_GT(half, 30);
  EXPECT_LT(half, 70);
  EXPECT_EQ(sample_rows(5, 9, 7, 0), std::vector<bool>(5, true));
  EXPECT_EQ(sample_rows(5, -1, 7, 0), std::vector<bool>(5, true));
}

TEST(ParseSource, TakesACountAfterTheLastHash) {
  TemporaryFolder const folder;
  write_file(folder / "a#3.jsonl", "{}\n");

  EXPECT_EQ(parse_source("x.jsonl").wanted, -1);
  EXPECT_EQ(parse_source("x.jsonl#500").wanted, 500);
  EXPECT_EQ(parse_source("x.jsonl#500").path, "x.jsonl");
  EXPECT_EQ(parse_source((folder / "a#3.jsonl").string()).wanted, -1);
  for (auto const* wrong : {"x#", "x#0", "x#-1", "x#1k", "x#99999999999999999999"})
    EXPECT_THROW(parse_source(wrong), Error) << wrong;
}

TEST(CutBlocks, BeginsAShardBeforeTheLimitIsPassed) {
  auto const cuts = cut_blocks({4, 4, 4, 20, 1, 1}, 10);

  ASSERT_EQ(cuts.size(), 4u);
  EXPECT_EQ(cuts[0].last, 2);
  EXPECT_EQ(cuts[1].last, 3);
  EXPECT_EQ(cuts[2].last, 4);
  EXPECT_EQ(cuts[3].first, 4);
  EXPECT_EQ(cuts[3].last, 6);
}

TEST(MediaCache, KeepsTheLastUsedWithinItsBytes) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 1);
  auto const picture = [&](int i) {
    return Part(ImageSource{(folder / text("p", i, ".bmp")).string(), ""});
  };
  MediaCache cache(ImageOptions{}, 40'000);  // pictures take 12,288 bytes and more

  auto const first = cache.load(picture(0));
  EXPECT_EQ(cache.load(picture(0)), first);
  cache.load(picture(1));
  EXPECT_EQ(cache.load(picture(0)), first);
  for (int i = 1; i < 10; ++i) cache.load(picture(i));
  EXPECT_NE(cache.load(picture(0)), first);

  Part const bytes(ImageSource{"", test::bitmap(40, 0)});
  EXPECT_EQ(cache.load(bytes)->pixels, first->pixels);
  EXPECT_TRUE(cache.load(bytes)->stamps.empty());
  EXPECT_EQ(first->stamps.size(), 1u);
}

TEST(Prepare, MakesASetThatHoldsTheRows) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 50);

  auto const result = run(test::request(folder / "a.jsonl", folder / "set"));
  auto const set = ShardSet::open(folder / "set");

  EXPECT_FALSE(result.cached);
  EXPECT_EQ(result.report.rows, 50);
  EXPECT_EQ(result.report.pairs, 150);
  EXPECT_EQ(result.report.forms.at("qwen"), 50);
  ASSERT_EQ(set.rows(), 50);
  auto const row = set.read(3);
  EXPECT_EQ(row.row.line, 4);
  EXPECT_EQ(row.file, (folder / "a.jsonl").string());
  ASSERT_EQ(row.row.media.size(), 3u);
  auto const picture = load_image({(folder / "p4.bmp").string(), ""}, ImageOptions{});
  EXPECT_EQ(row.pixels[1], picture.resized.rgb);
  EXPECT_NE(test::tokenizer().decode(row.row.pairs[1].ids).find("query number 3"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "set/.prepare"));
}

TEST(Prepare, StoresVideosWithTheirTimesAndNoticesWhenAFrameChanges) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "unused.jsonl", 1);
  nlohmann::json const row = {
      {"query", {{"text", "noise"}}},
      {"documents",
       {{{"video", {"p1.bmp", "p1.bmp", "p1.bmp"}}, {"label", 1}}, {{"text", "b"}, {"label", 0}}}}};
  write_file(folder / "a.jsonl", row.dump() + "\n");
  auto const request = test::request(folder / "a.jsonl", folder / "set");
  run(request);

  auto const stored = ShardSet::open(folder / "set").read(0);

  ASSERT_EQ(stored.row.media.size(), 1u);
  EXPECT_TRUE(stored.row.media[0].video);
  EXPECT_EQ(stored.row.media[0].grid.t, 2);  // three frames, the last one repeated
  EXPECT_EQ(stored.row.media[0].seconds.size(), 2u);
  EXPECT_EQ(static_cast<std::int64_t>(stored.pixels[0].size()), pixel_bytes(stored.row.media[0]));
  EXPECT_TRUE(run(request).cached);
  write_file(folder / "p1.bmp", test::bitmap(48, 123));
  EXPECT_FALSE(run(request).cached);
}

TEST(Prepare, FindsItsSetAndNoticesEveryChange) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 20);
  auto request = test::request(folder / "a.jsonl", folder / "set");
  run(request);
  auto const made = test::contents(folder / "set");

  EXPECT_TRUE(run(request).cached);
  EXPECT_EQ(run(request).report.rows, 20);
  EXPECT_EQ(test::contents(folder / "set"), made);

  request.encode.max_length = 300;
  EXPECT_FALSE(run(request).cached);
  request.rows.duplicates = Duplicates::keep;
  EXPECT_FALSE(run(request).cached);
  EXPECT_TRUE(run(request).cached);
  write_file(folder / "p0.bmp", test::bitmap(40, 77));
  EXPECT_FALSE(run(request).cached);
  EXPECT_TRUE(run(request).cached);
  test::write_rows(folder.path(), "a.jsonl", 19);
  EXPECT_EQ(run(request).report.rows, 19);
  fs::resize_file(folder / "set/part-00000.h5", 100);
  EXPECT_FALSE(run(request).cached);
  request.overwrite = true;
  EXPECT_FALSE(run(request).cached);
  EXPECT_EQ(ShardSet::open(folder / "set").rows(), 19);
}

TEST(Prepare, ReplacesALongerSetWithoutLeavingItsShards) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "long.jsonl", 200);
  test::write_rows(folder.path(), "short.jsonl", 20);
  auto request = test::request(folder / "long.jsonl", folder / "set");
  request.shard_bytes = 10'000;
  EXPECT_GT(run(request).shards.size(), 2u);
  write_file(folder / "set/part-notes.h5", "not a shard");

  run(test::request(folder / "short.jsonl", folder / "set"));

  EXPECT_EQ(ShardSet::open(folder / "set").shards().size(), 1u);
  EXPECT_FALSE(fs::exists(folder / "set/part-00001.h5"));
  EXPECT_TRUE(fs::exists(folder / "set/part-notes.h5"));
}

TEST(Prepare, SkipsBadRowsUpToTheLimitAndNamesThem) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 60, 20);
  auto request = test::request(folder / "a.jsonl", folder / "set");

  auto const result = run(request);
  EXPECT_EQ(result.report.bad_rows, 3);
  EXPECT_EQ(result.report.rows, 57);
  ASSERT_EQ(result.report.first_bad.size(), 3u);
  EXPECT_EQ(result.report.first_bad[1].line, 40);
  auto const lines = read_file(folder / "set/prepare-rows.jsonl");
  EXPECT_NE(lines.find("\"line\":60,\"status\":\"rejected\""), std::string::npos) << lines;

  request.output = folder / "few";
  request.max_bad_rows = 2;
  auto const few = refusal(request);
  EXPECT_EQ(few.code(), Exit::input);
  EXPECT_NE(few.summary().find("3 bad rows or more among 60, at most 2"), std::string::npos);
  EXPECT_NE(few.summary().find("a.jsonl:20: "), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "few"));

  request.strict = true;
  auto const strict = refusal(request);
  EXPECT_EQ(strict.code(), Exit::input);
  EXPECT_NE(strict.summary().find("a.jsonl:20: "), std::string::npos);
}

TEST(Prepare, CountsAndListsWhatIsCut) {
  TemporaryFolder const folder;
  std::string words;
  for (int i = 0; i < 400; ++i) words += " word" + std::to_string(i);
  nlohmann::json const row = {{"query", "short"}, {"pos", {words}}, {"neg", {"short"}}};
  write_file(folder / "a.jsonl", row.dump() + "\n");
  auto request = test::request(folder / "a.jsonl", folder / "set");
  request.encode.max_length = 200;

  auto const report = run(request).report;

  EXPECT_EQ(report.cut_rows, 1);
  EXPECT_EQ(report.cut_pairs, 1);
  EXPECT_GT(report.cut_tokens, 200);
  EXPECT_NE(read_file(folder / "set/prepare-rows.jsonl").find("\"cut_pairs\":1"),
            std::string::npos);
}

TEST(Prepare, RefusesMissingEmptyAndUnusableInput) {
  TemporaryFolder const folder;
  write_file(folder / "empty.jsonl", "");
  write_file(folder / "blank.jsonl", "\n \n\n");
  write_file(folder / "bad.jsonl", "{\n");

  for (auto const* name : {"empty.jsonl", "blank.jsonl", "bad.jsonl", "none.jsonl"}) {
    auto const error = refusal(test::request(folder / name, folder / "set"));
    EXPECT_EQ(error.code(), Exit::input) << name;
    EXPECT_FALSE(fs::exists(folder / "set")) << name;
  }
  auto request = test::request("", folder / "set");
  request.inputs.clear();
  EXPECT_EQ(refusal(request).code(), Exit::usage);
}

TEST(Prepare, LeavesNothingOnAFullDisk) {
  TemporaryFolder const folder;
  SmallDisk const disk(folder / "disk", 1 << 20);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  test::write_rows(folder.path(), "a.jsonl", 600);

  auto const error = refusal(test::request(folder / "a.jsonl", disk.path() / "set"));

  EXPECT_EQ(error.code(), Exit::io) << error.what();
  EXPECT_NE(error.summary().find("free"), std::string::npos) << error.what();
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(Prepare, TakesASampleOfRows) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 100);
  auto request = test::request((folder / "a.jsonl").string() + "#10", folder / "set");

  EXPECT_EQ(run(request).report.rows, 10);
  auto const first = ShardSet::open(folder / "set").read(0).row.line;
  request.seed = 1;
  EXPECT_FALSE(run(request).cached);
  EXPECT_NE(ShardSet::open(folder / "set").read(0).row.line, first);
}

TEST(OpenOrPrepare, OpensFoldersAndCachesFiles) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 20);
  test::write_rows(folder.path(), "b.jsonl", 30);
  run(test::request(folder / "a.jsonl", folder / "set"));
  auto const control = make_self_communicator(at::kCPU);
  auto request = test::request("", "");
  request.inputs = {(folder / "b.jsonl").string(), (folder / "set").string()};

  auto sets = open_or_prepare(request, folder / "cache", *control);
  auto const cached = test::contents(folder / "cache");
  sets = open_or_prepare(request, folder / "cache", *control);

  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].rows(), 30);
  EXPECT_EQ(sets[1].rows(), 20);
  EXPECT_EQ(test::contents(folder / "cache"), cached);

  request.encode.max_length = 100;
  try {
    open_or_prepare(request, folder / "cache", *control);
    FAIL() << "a set of another length was taken";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_NE(error.summary().find("encode.max_length is 4096, wanted 100"), std::string::npos);
  }
}

}  // namespace
}  // namespace vlrerank
