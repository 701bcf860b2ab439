// shards/shard_test.cpp -- rows come back as they went in, whatever they hold.
#include "shards/shard.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <thread>

#include "shards/describe.hpp"
#include "shards/spill.hpp"
#include "support/small_disk.hpp"
#include "support/temporary_folder.hpp"
#include "synthetic.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

template <class Call>
Error refusal(Call call) {
  try {
    call();
  } catch (Error const& error) {
    return error;
  }
  return Error(Exit::done, "nothing was refused", "", "");
}

TEST(Shards, GiveEveryRowBackInOrder) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 100, 30);

  auto const set = ShardSet::open(folder.path());

  ASSERT_EQ(set.rows(), 100);
  EXPECT_EQ(set.shards().size(), 4u);
  for (unsigned i = 0; i < 100; ++i) {
    auto const wanted = test::row(i);
    EXPECT_TRUE(test::same(set.read(i), wanted)) << "row " << i;
    auto const index = set.index(i);
    EXPECT_EQ(index.shard, static_cast<std::int32_t>(i / 30));
    EXPECT_EQ(index.row, static_cast<std::int32_t>(i % 30));
    EXPECT_EQ(index.prefix, wanted.row.prefix_end);
    ASSERT_EQ(index.labels.size(), wanted.row.pairs.size());
    std::int32_t patches = 0;
    for (auto const& medium : wanted.row.media)
      patches += medium.grid.t * medium.grid.h * medium.grid.w;
    EXPECT_EQ(index.patches, patches);
    for (std::size_t k = 0; k < index.labels.size(); ++k) {
      EXPECT_EQ(index.labels[k], wanted.row.pairs[k].label);
      EXPECT_EQ(index.pair_tokens[k], static_cast<std::int32_t>(wanted.row.pairs[k].ids.size()));
    }
  }
}

TEST(Shards, KeepTheWholeRecipe) {
  TemporaryFolder const folder;
  auto recipe = test::recipe();
  recipe.encode.truncation = Truncation::script;
  recipe.encode.special_strings = AddedTokens::parse;
  recipe.encode.system = std::string(100'000, 's');
  recipe.image.min_tokens = 5;
  recipe.image.exif = Exif::ignore;
  recipe.image.root = "/data/\xE5\x9B\xBE";
  test::write_set(folder.path(), 3, 2, recipe);

  auto const set = ShardSet::open(folder.path());

  EXPECT_EQ(to_json(set.recipe()), to_json(recipe));
  EXPECT_EQ(recipe_difference(set.recipe(), recipe), "");
}

TEST(Shards, StoreEachDistinctImageOnce) {
  TemporaryFolder const folder;
  auto const [grid, pixels] = test::medium(4, 4, 0, 1);
  auto const [other_shape, other_pixels] = test::medium(2, 8, 0, 1);
  ASSERT_EQ(pixels, other_pixels);
  ShardWriter writer(folder.path(), "part", 0, test::recipe());
  for (int i = 0; i < 10; ++i) {
    StoredRow row = test::row(0);
    row.row.media = {grid, other_shape, grid};
    row.pixels = {pixels, other_pixels, pixels};
    row.row.pairs.resize(1);
    row.row.pairs[0].media = {2, 0, 1};
    row.row.prefix_end = 0;
    row.row.line = i;
    writer.append(row);
  }
  auto const file = writer.finish();

  auto const set = ShardSet::open_shard(folder / file.file);

  EXPECT_EQ(file.images, 2);  // equal bytes of another shape are another image
  EXPECT_LT(file.bytes, 3 * pixels.size() + 60'000);
  EXPECT_EQ(set.read(9).pixels[2], pixels);
  EXPECT_EQ(set.read(9).row.media[1].grid, other_shape.grid);
}

TEST(Shards, AreEqualBytesForEqualRows) {
  TemporaryFolder const first, second;
  test::write_set(first.path(), 20, 20);
  test::write_set(second.path(), 20, 20);

  EXPECT_EQ(read_file(first / "part-00000.h5"), read_file(second / "part-00000.h5"));
  EXPECT_EQ(read_file(first / "manifest.json"), read_file(second / "manifest.json"));
}

TEST(Shards, MayBeEmpty) {
  TemporaryFolder const folder;
  auto const file = ShardWriter(folder.path(), "none", 0, test::recipe()).finish();
  write_manifest(folder.path(), "none", test::recipe(), {file});

  EXPECT_EQ(ShardSet::open(folder.path()).rows(), 0);
}

TEST(Shards, CanBeReadByManyThreads) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 60, 7);
  auto const set = ShardSet::open(folder.path());
  std::atomic<int> wrong = 0;

  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 60; ++i)
        if (!test::same(set.read((i * 7 + t) % 60), test::row((i * 7 + t) % 60))) ++wrong;
    });
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(wrong, 0);
}

TEST(Shards, AreReadWithFewerOpenFilesThanShards) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 300, 1);
  auto const set = ShardSet::open(folder.path());

  for (unsigned i = 0; i < 300; ++i) EXPECT_TRUE(test::same(set.read(i), test::row(i)));
  auto const open =
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());

  EXPECT_LT(open, 200);
}

TEST(Shards, ReachPixelsBehindFourGibibytes) {
  TemporaryFolder const folder;
  std::uint64_t const far = std::uint64_t{9} << 29;  // 4.5 GiB
  auto const [grid, pixels] = test::medium(2, 2, 0, 3);
  shards::Index index;
  std::string const names = "[\"a.jsonl\"]";
  index.files.assign(names.begin(), names.end());
  StoredRow row;
  row.file = "a.jsonl";
  row.row.line = 1;
  row.row.media = {grid};
  row.pixels = {pixels};
  row.row.pairs = {{1.0f, {5, 6}, {0}, 0}};
  auto const hash = shards::hash_image(grid, pixels);
  index.group_offsets = {0, 1};
  index.prefix_end = {0};
  index.source_line = {1};
  index.source_file = {0};
  index.row_id_offsets = {0, 0};
  index.media_offsets = {0, 1};
  index.media = {1};
  index.row_xxh3 = {shards::hash_row(row.row, {hash}, "", "a.jsonl")};
  index.pair_offsets = {0, 2};
  index.labels = {1.0f};
  index.cut_tokens = {0};
  index.pair_media_offsets = {0, 1};
  index.pair_media = {0};
  index.image_grid = {1, 2, 2, 1, 2, 2};
  index.image_video = {0, 0};
  index.image_offsets = {0, static_cast<std::int64_t>(far),
                         static_cast<std::int64_t>(far + pixels.size())};
  index.image_seconds_offsets = {0, 0, 0};
  index.image_xxh3 = {0, 0, hash[0], hash[1]};
  test::forge(folder / "far.h5", index, {5, 6}, far + pixels.size(), [](hdf5::Layout&) {},
              {{far, pixels}});

  EXPECT_TRUE(test::same(ShardSet::open_shard(folder / "far.h5").read(0), row));
}

TEST(Shards, OfAnotherRecipeAreRefusedWithTheDifference) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 3, 3);
  auto const set = ShardSet::open(folder.path());
  auto wanted = test::recipe();
  wanted.image.root = "elsewhere";
  wanted.sources = "[]";
  EXPECT_NO_THROW(set.require_recipe(wanted));

  wanted.encode.max_length = 4096;
  wanted.image.exif = Exif::ignore;
  wanted.tokenizer = 1;
  auto const error = refusal([&] { set.require_recipe(wanted); });

  EXPECT_EQ(error.code(), Exit::input);
  EXPECT_NE(error.summary().find("encode.max_length is 512, wanted 4096"), std::string::npos);
  EXPECT_NE(error.summary().find("image.exif is \"apply\", wanted \"ignore\""), std::string::npos);
  EXPECT_NE(error.summary().find("tokenizer is \"0123456789abcdef\""), std::string::npos);
  EXPECT_EQ(error.summary().find("root"), std::string::npos);
}

TEST(Shards, LeaveNothingOnAFullDisk) {
  TemporaryFolder const folder;
  SmallDisk const disk(folder / "disk", 2 << 20);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  {
    ShardWriter writer(disk.path(), "part", 0, test::recipe());
    StoredRow row = test::row(1);
    auto [grid, pixels] = test::medium(64, 64, 0, 1);
    row.row.media = {grid};
    row.pixels = {pixels};
    for (auto& pair : row.row.pairs) pair.media = {0};
    writer.append(row);

    auto const error = refusal([&] { writer.finish(); });

    EXPECT_EQ(error.code(), Exit::io) << error.what();
    EXPECT_NE(error.summary().find("bytes wanted"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(ShardWriter, RefusesInconsistentRowsAsABug) {
  TemporaryFolder const folder;
  ShardWriter writer(folder.path(), "part", 0, test::recipe());
  auto const code = [&](auto change) {
    StoredRow row = test::row(2);
    auto [grid, pixels] = test::medium(2, 2, 0, 1);
    row.row.media = {grid};
    row.pixels = {pixels};
    row.row.pairs = {{1.0f, {1, 2, 3}, {0}, 0}};
    row.row.prefix_end = 0;
    change(row);
    return refusal([&] { writer.append(row); }).code();
  };

  EXPECT_EQ(code([](StoredRow&) {}), Exit::done);
  EXPECT_EQ(code([](StoredRow& row) { row.pixels[0].pop_back(); }), Exit::internal);
  EXPECT_EQ(code([](StoredRow& row) { row.pixels.clear(); }), Exit::internal);
  EXPECT_EQ(code([](StoredRow& row) { row.row.pairs[0].media = {1}; }), Exit::internal);
  EXPECT_EQ(code([](StoredRow& row) { row.row.pairs.clear(); }), Exit::internal);
  EXPECT_EQ(code([](StoredRow& row) { row.row.prefix_end = 4; }), Exit::internal);
  EXPECT_EQ(writer.rows(), 1);
}

TEST(Spill, GivesBytesBackFromMemoryAndDiskInOrder) {
  TemporaryFolder const folder;
  Spill spill(folder.path(), 100);
  std::vector<std::byte> all, back;
  for (unsigned i = 0; i < 50; ++i) {
    std::vector<std::byte> const piece(i * i % 257, std::byte(i));
    spill.append(piece);
    all.insert(all.end(), piece.begin(), piece.end());
  }

  spill.for_each([&](std::uint64_t offset, std::span<std::byte const> piece) {
    EXPECT_EQ(offset, back.size());
    back.insert(back.end(), piece.begin(), piece.end());
  });

  EXPECT_EQ(back, all);
  EXPECT_TRUE(fs::is_empty(folder.path()));  // the file on disk has no name
}

TEST(ShardWriter, NeedsMemoryForItsBuffersNotForItsShard) {
  TemporaryFolder const folder;
  auto const peak_mib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  auto const before = peak_mib();
  ShardWriter writer(folder.path(), "part", 0, test::recipe());
  auto [grid, pixels] = test::medium(32, 32, 0, 1);  // 768 KiB
  for (unsigned i = 0; i < 400; ++i) {               // 300 MiB
    StoredRow row = test::row(1);
    pixels[0] = static_cast<std::uint8_t>(i);
    pixels[1] = static_cast<std::uint8_t>(i >> 8);
    row.row.media = {grid};
    row.pixels = {pixels};
    for (auto& pair : row.row.pairs) pair.media = {0};
    writer.append(row);
  }
  auto const file = writer.finish(Durability::cached);

  EXPECT_GT(file.bytes, 300u << 20);
#ifdef __SANITIZE_ADDRESS__
  double const limit = 240;  // AddressSanitizer keeps freed memory for a while
#else
  double const limit = 80;
#endif
  EXPECT_LT(peak_mib() - before, limit);
}

TEST(DescribeShards, NamesCountsRecipeAndFiles) {
  TemporaryFolder const folder;
  auto const files = test::write_set(folder.path(), 10, 4);

  auto const all = describe_shards(folder.path());
  auto const one = describe_shards(folder / "part-00001.h5");

  EXPECT_NE(all.find("shard set part: 10 rows"), std::string::npos) << all;
  EXPECT_NE(all.find("\"max_length\":512"), std::string::npos) << all;
  EXPECT_NE(all.find("a.jsonl"), std::string::npos) << all;
  EXPECT_NE(all.find(hex(files[2].index)), std::string::npos) << all;
  EXPECT_NE(one.find("4 rows"), std::string::npos) << one;
}

}  // namespace
}  // namespace vlrerank
