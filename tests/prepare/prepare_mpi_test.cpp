// prepare/prepare_mpi_test.cpp -- any number of ranks makes the same set, and fails as one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support.hpp"
#include "support/mpi_main.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

/// A folder that all ranks share, removed when the last one is done with it.
class SharedFolder {
 public:
  SharedFolder() {
    std::string name = (fs::temp_directory_path() / "vlrerank-XXXXXX").string();
    if (test::world().is_root() && ::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no folder " + name);
    path_ = broadcast_text(test::world(), name);
  }
  ~SharedFolder() {
    test::world().barrier();
    if (test::world().is_root()) fs::remove_all(path_);
  }
  fs::path operator/(std::string const& name) const { return path_ / name; }
  fs::path const& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(PrepareOnRanks, MakesTheBytesThatOneRankMakes) {
  SharedFolder const folder;
  if (test::world().is_root()) test::write_rows(folder.path(), "a.jsonl", 300, 60);
  test::world().barrier();
  auto request = test::request(folder / "a.jsonl", folder / "together");
  request.shard_bytes = 100'000;

  auto const together = prepare(request, test::world());
  auto const alone_control = make_self_communicator(at::kCPU);
  request.output = folder / text("alone", test::world().rank());
  auto const alone = prepare(request, *alone_control);

  EXPECT_EQ(test::contents(folder / "together"), test::contents(request.output));
  EXPECT_EQ(to_json(together.report), to_json(alone.report));
  EXPECT_EQ(together.report.bad_rows, 5);
  EXPECT_GT(together.shards.size(), 2u);
}

TEST(PrepareOnRanks, FindsTheSetOnEveryRank) {
  SharedFolder const folder;
  if (test::world().is_root()) test::write_rows(folder.path(), "a.jsonl", 100);
  test::world().barrier();
  auto const request = test::request(folder / "a.jsonl", folder / "set");
  EXPECT_FALSE(prepare(request, test::world()).cached);
  test::world().barrier();

  auto const again = prepare(request, test::world());

  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.report.rows, 100);
  EXPECT_EQ(ShardSet::open(folder / "set").rows(), 100);
}

TEST(PrepareOnRanks, ThrowsTheSameErrorOnEveryRank) {
  SharedFolder const folder;
  if (test::world().is_root()) {
    test::write_rows(folder.path(), "bad.jsonl", 200, 3);
    test::write_rows(folder.path(), "few.jsonl", 200, 150);
  }
  test::world().barrier();
  for (bool const strict : {false, true}) {
    auto request = test::request(folder / (strict ? "few.jsonl" : "bad.jsonl"), folder / "set");
    request.strict = strict;
    std::string message;
    try {
      prepare(request, test::world());
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input);
      message = error.what();
    }

    EXPECT_NE(message.find(strict ? "few.jsonl:150: " : "bad.jsonl:3: "), std::string::npos)
        << message;
    for (auto const& other : all_gather_text(test::world(), message)) EXPECT_EQ(other, message);
    EXPECT_FALSE(fs::exists(folder / "set"));
    test::world().barrier();
  }
}

}  // namespace
}  // namespace vlrerank

VLR_MPI_TEST_MAIN()
