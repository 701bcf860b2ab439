// prepare/kill_test.cpp -- a prepare killed at any point, and run again, ends with the same set.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support.hpp"
#include "support/temporary_folder.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

PrepareResult run(PrepareRequest const& request) {
  auto const control = make_self_communicator(at::kCPU);
  return prepare(request, *control);
}

/// Runs prepare in a process of its own that dies by SIGKILL when `dies(done)` says so after a
/// block, or when it has lived for `life`.
template <class Dies>
bool killed(PrepareRequest request, Dies dies, std::chrono::microseconds life) {
  pid_t const child = ::fork();
  if (child == 0) {
    request.progress = [&](std::int64_t done, std::int64_t) {
      if (dies(done)) ::kill(::getpid(), SIGKILL);
    };
    try {
      run(request);
    } catch (std::exception const&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  if (life.count() > 0) {
    std::this_thread::sleep_for(life);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(PrepareKilled, AfterAnyBlockGoesOnToTheSameSet) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 300, 50);
  auto request = test::request(folder / "a.jsonl", folder / "straight");
  run(request);
  auto const wanted = test::contents(folder / "straight");
  request.output = folder / "set";

  for (std::int64_t const last : {1, 7, 19}) {
    fs::remove_all(folder / "set");
    ASSERT_TRUE(killed(request, [&](std::int64_t done) { return done == last; }, {}));
    EXPECT_FALSE(fs::exists(folder / "set/manifest.json"));
    std::int64_t last_done = 0;
    auto const before = test::contents(folder / "set/.prepare");
    request.progress = [&](std::int64_t done, std::int64_t) { last_done = done; };

    auto const result = run(request);

    EXPECT_TRUE(result.resumed);
    EXPECT_GT(before.size(), static_cast<std::size_t>(2 * last));
    EXPECT_EQ(last_done, 19);
    EXPECT_EQ(test::contents(folder / "set"), wanted) << "killed after block " << last;
    request.progress = nullptr;
  }
}

TEST(PrepareKilled, AtAnyMomentGoesOnToTheSameSet) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 300);
  auto request = test::request(folder / "a.jsonl", folder / "straight");
  auto const start = std::chrono::steady_clock::now();
  run(request);
  auto const whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  auto const wanted = test::contents(folder / "straight");
  request.output = folder / "set";

  int kills = 0;
  for (int i = 1; i <= 12; ++i) {
    fs::remove_all(folder / "set");
    kills += killed(
        request, [](std::int64_t) { return false; }, whole * i / 12);
    run(request);
    EXPECT_EQ(test::contents(folder / "set"), wanted) << "killed at " << i << "/12";
  }
  EXPECT_GT(kills, 5);
}

TEST(PrepareKilled, DoesNotTrustBlocksWhosePicturesChanged) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 100);
  auto request = test::request(folder / "a.jsonl", folder / "set");
  ASSERT_TRUE(killed(request, [](std::int64_t done) { return done == 3; }, {}));
  write_file(folder / "p1.bmp", test::bitmap(48, 99));

  run(request);

  request.output = folder / "straight";
  run(request);
  EXPECT_EQ(test::contents(folder / "set"), test::contents(folder / "straight"));
}

TEST(PrepareKilled, StartsAnewWhenTheRequestHasChanged) {
  TemporaryFolder const folder;
  test::write_rows(folder.path(), "a.jsonl", 100);
  auto request = test::request(folder / "a.jsonl", folder / "set");
  ASSERT_TRUE(killed(request, [](std::int64_t done) { return done == 3; }, {}));
  request.encode.max_length = 333;

  EXPECT_FALSE(run(request).resumed);

  EXPECT_EQ(ShardSet::open(folder / "set").recipe().encode.max_length, 333);
}

}  // namespace
}  // namespace vlrerank
