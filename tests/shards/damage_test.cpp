// shards/damage_test.cpp -- damaged, cut, foreign and hostile shards are refused by name, and
// nothing is read outside of them.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <limits>
#include <random>

#include "shards/shard.hpp"
#include "support/temporary_folder.hpp"
#include "synthetic.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

/// The message with which opening the set and reading all of it ends; "" when all is well.
std::string refusal(fs::path const& path) {
  try {
    auto const set = fs::is_directory(path) ? ShardSet::open(path) : ShardSet::open_shard(path);
    for (std::int64_t i = 0; i < set.rows(); ++i) set.read(i);
    return "";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input) << error.what();
    return error.summary();
  }
}

void flip(fs::path const& path, std::uint64_t byte, unsigned bit = 3) {
  auto bytes = read_file(path);
  bytes.at(byte) = static_cast<char>(bytes.at(byte) ^ (1 << bit));
  write_file(path, bytes, Durability::cached);
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(DamagedShard, NamesTheRowWhoseTokensWereHit) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 20, 10);
  auto const path = folder / "part-00001.h5";
  auto const set = ShardSet::open(folder.path());
  std::uint64_t token = 0;  // the first of row 14
  for (int i = 10; i < 14; ++i)
    for (auto const tokens : set.index(i).pair_tokens) token += static_cast<unsigned>(tokens);
  flip(path, hdf5::open(path).array("tokens")->offset + 4 * token + 1);

  EXPECT_TRUE(test::same(set.read(13), test::row(13)));
  auto const message = refusal(folder.path());

  EXPECT_TRUE(contains(message, "part-00001.h5: row 4 (a.jsonl:24) is damaged")) << message;
}

TEST(DamagedShard, NamesTheImageAndRowWhosePixelsWereHit) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 10);
  auto const path = folder / "part-00000.h5";
  flip(path, hdf5::open(path).array("pixels")->offset + 5);

  auto const message = refusal(folder.path());

  EXPECT_TRUE(contains(message, "part-00000.h5: image 0 of row")) << message;
}

TEST(DamagedShard, NamesTheIndexArrayThatWasHit) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 10);
  auto const path = folder / "part-00000.h5";
  auto const layout = hdf5::open(path);
  for (auto const& array : layout.arrays) {
    if (array.name == "tokens" || array.name == "pixels" || array.bytes() == 0) continue;
    flip(path, array.offset + array.bytes() - 1);

    EXPECT_TRUE(contains(refusal(path), "dataset " + array.name + " is damaged"));
    flip(path, array.offset + array.bytes() - 1);
  }
  EXPECT_EQ(refusal(path), "");
}

TEST(DamagedShard, IsNoticedWhenItChangesWhileOpen) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 10);
  auto const path = folder / "part-00000.h5";
  auto const set = ShardSet::open(folder.path());
  for (auto const* name :
       {"image_grid", "pair_media_offsets", "image_offsets", "row_ids", "pair_media", "media"}) {
    auto const array = *hdf5::open(path).array(name);
    auto const before = read_file(path);
    auto after = before;
    for (std::uint64_t i = 0; i < array.bytes(); ++i)
      after[array.offset + i] = i % 8 == 7 ? '\x7f' : '\xff';
    for (auto const& now : {after, before}) {
      std::FILE* file = std::fopen(path.c_str(), "r+b");
      ASSERT_EQ(std::fwrite(now.data(), 1, now.size(), file), now.size());
      std::fclose(file);
      int refused = 0;
      for (int i = 0; i < 10; ++i) try {
          set.read(i);
        } catch (Error const& error) {
          EXPECT_EQ(error.code(), Exit::input);
          ++refused;
        }
      EXPECT_EQ(refused > 0, now == after) << name;
    }
  }
}

TEST(DamagedShard, IsRefusedWhenCut) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 10);
  auto const path = folder / "part-00000.h5";
  auto const size = fs::file_size(path);
  for (auto const left : {size - 1, size / 2, std::uintmax_t{100}, std::uintmax_t{0}}) {
    fs::resize_file(path, left);

    EXPECT_TRUE(
        contains(refusal(folder.path()), text("has ", left, " bytes, the manifest says ", size)));
    EXPECT_NE(refusal(path), "");
  }
}

TEST(DamagedSet, IsRefusedWithoutManifestOrShard) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 5);
  fs::remove(folder / "part-00001.h5");
  EXPECT_TRUE(contains(refusal(folder.path()), "part-00001.h5 is missing"));

  fs::remove(folder / "manifest.json");
  try {
    ShardSet::open(folder.path());
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_TRUE(contains(error.what(), "has no manifest.json"));
    EXPECT_TRUE(contains(error.what(), "run `vlrerank prepare` again"));
  }
}

TEST(DamagedSet, IsRefusedWhenShardsOfTwoSetsAreMixed) {
  TemporaryFolder const folder, other;
  test::write_set(folder.path(), 10, 5);
  auto recipe = test::recipe();
  recipe.encode.max_length = 99;
  test::write_set(other.path(), 10, 5, recipe);
  auto const size = fs::file_size(folder / "part-00001.h5");
  fs::copy_file(other / "part-00001.h5", folder / "part-00001.h5",
                fs::copy_options::overwrite_existing);
  fs::resize_file(folder / "part-00001.h5", size);

  auto const message = refusal(folder.path());

  EXPECT_TRUE(contains(message, "part-00001.h5 was made in another way")) << message;
  EXPECT_TRUE(contains(message, "encode.max_length is 99, wanted 512")) << message;
}

TEST(DamagedSet, RefusesEveryMutatedManifest) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 10, 5);
  auto const good = read_file(folder / "manifest.json");
  for (std::string const bad :
       {"", "{", "[]", "null", "{\"format\": 7}", "{\"format\": \"vlrerank-shards\"}",
        "{\"format\":\"vlrerank-shards\",\"version\":2}", "\xff\xfe"}) {
    write_file(folder / "manifest.json", bad, Durability::cached);
    EXPECT_TRUE(contains(refusal(folder.path()), "manifest.json")) << bad;
  }
  auto outside = good;
  outside.replace(outside.find("part-00000.h5"), 4, "../x");
  write_file(folder / "manifest.json", outside, Durability::cached);
  EXPECT_TRUE(contains(refusal(folder.path()), "outside its folder"));
  write_file(folder / "manifest.json", std::string(1 << 20, '['), Durability::cached);
  EXPECT_NE(refusal(folder.path()), "");
}

TEST(ForeignFile, IsRefusedByName) {
  TemporaryFolder const folder;
  auto const path = folder / "x.h5";
  hid_t const file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_TRUE(contains(refusal(path), "was not written by vlrerank"));

  hdf5::Layout other{{{"a", hdf5::Type::i32, {3}, 0}}, {{"format", "something", ""}}};
  hdf5::create(path, other);
  EXPECT_TRUE(contains(refusal(path), "is not a shard of vlrerank but something"));

  hdf5::Layout newer{{}, {{"format", "vlrerank-shard", ""}, {"version", std::int64_t{2}, ""}}};
  hdf5::create(path, newer);
  EXPECT_TRUE(contains(refusal(path), "has format version 2, this program reads 1"));
}

/// The index, tokens and pixel count of a good shard, to forge others from.
struct Good {
  shards::OpenedShard opened;
  std::vector<std::int32_t> tokens;
  std::uint64_t pixels;
};

Good good_shard(TemporaryFolder const& folder) {
  test::write_set(folder.path(), 12, 12);
  auto opened = shards::open_shard_file(folder / "part-00000.h5");
  InputFile const file(folder / "part-00000.h5");
  std::vector<std::int32_t> tokens(opened.layout.array("tokens")->elements());
  file.read_at(opened.layout.array("tokens")->offset, std::as_writable_bytes(std::span(tokens)));
  auto const pixels = opened.layout.array("pixels")->elements();
  return {std::move(opened), std::move(tokens), pixels};
}

TEST(HostileShard, WithRightChecksumsIsStillRefused) {
  TemporaryFolder const folder;
  auto const good = good_shard(folder);
  auto const path = folder / "forged.h5";
  int refused = 0, tried = 0;
  shards::Index index = good.opened.index;
  shards::for_each_array(index, [&](char const* name, auto& values, int) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    for (std::size_t at : {std::size_t{0}, values.size() / 2, values.size() - 1})
      for (T const value : {std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
                            static_cast<T>(values[at] + T{1})}) {
        auto const before = std::exchange(values[at], value);
        test::forge(path, index, good.tokens, good.pixels, [](hdf5::Layout&) {});
        values[at] = before;
        ++tried;
        auto const message = refusal(path);  // pixels are holes: images are refused at reading
        refused += !message.empty();
        EXPECT_FALSE(message.empty()) << name << "[" << at << "] = " << +value;
      }
  });
  EXPECT_GT(tried, 150);
  EXPECT_EQ(refused, tried);
}

TEST(HostileShard, WithWrongShapesAndTypesIsRefusedBeforeMemoryIsTaken) {
  TemporaryFolder const folder;
  auto const good = good_shard(folder);
  auto const path = folder / "forged.h5";
  auto const after = [&](auto change) {
    test::forge(path, good.opened.index, good.tokens, good.pixels, change);
    return refusal(path);
  };
  auto const find = [](hdf5::Layout& layout, std::string const& name) {
    return std::find_if(layout.arrays.begin(), layout.arrays.end(),
                        [&](auto const& array) { return array.name == name; });
  };
  for (auto const& array : good.opened.layout.arrays) {
    EXPECT_TRUE(contains(
        after([&](hdf5::Layout& layout) { layout.arrays.erase(find(layout, array.name)); }),
        array.name))
        << array.name;
    EXPECT_TRUE(contains(after([&](hdf5::Layout& layout) {
                           auto& type = find(layout, array.name)->type;
                           type = type == hdf5::Type::f64 ? hdf5::Type::u8 : hdf5::Type::f64;
                         }),
                         array.name))
        << array.name;
    EXPECT_TRUE(contains(after([&](hdf5::Layout& layout) {
                           find(layout, array.name)->shape = {
                               1,
                               1,
                           };
                         }),
                         array.name))
        << array.name;
  }
}

TEST(DamagedShard, OfTwoHundredRandomMutationsNeverCrashesOrLies) {
  TemporaryFolder const folder;
  test::write_set(folder.path(), 6, 6);
  auto const path = folder / "part-00000.h5";
  auto const good = read_file(path);
  std::mt19937 random(5);
  int harmless = 0;
  for (int i = 0; i < 200; ++i) {
    auto bytes = good;
    // Half of them where HDF5 keeps its structure, at the file's beginning.
    auto const range = i % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 8192);
    for (unsigned k = 0, count = 1 + random() % 8; k < count; ++k)
      bytes[random() % range] = static_cast<char>(random());
    if (random() % 10 == 0) bytes.resize(random() % bytes.size());
    write_file(path, bytes, Durability::cached);
    try {
      auto const set = ShardSet::open_shard(path);
      for (std::int64_t row = 0; row < set.rows(); ++row)
        EXPECT_TRUE(test::same(set.read(row), test::row(static_cast<unsigned>(row)))) << i;
      ++harmless;  // it hit a gap between arrays
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input) << error.what();
    }
  }
  EXPECT_LT(harmless, 150);
}

}  // namespace
}  // namespace vlrerank
