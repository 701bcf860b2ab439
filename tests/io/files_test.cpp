// io/files_test.cpp -- files appear whole or not at all.
#include "io/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

std::size_t entries(fs::path const& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, AppearsUnderItsNameOnlyWhenCommitted) {
  TemporaryFolder const folder;
  AtomicFile file(folder / "a.txt");
  file.append("one ");
  file.append("two");

  EXPECT_FALSE(fs::exists(folder / "a.txt"));
  file.commit();

  EXPECT_EQ(read_file(folder / "a.txt"), "one two");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, LeavesTheOldFileAndNoTraceWhenAbandoned) {
  TemporaryFolder const folder;
  write_file(folder / "a.txt", "old");

  { AtomicFile(folder / "a.txt").append("new"); }

  EXPECT_EQ(read_file(folder / "a.txt"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, SaysWhatAFullDiskLacksAndCleansUp) {
  TemporaryFolder const folder;
  SmallDisk const disk(folder / "disk", 1 << 20);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();

  try {
    write_file(disk.path() / "a.bin", std::string(4 << 20, 'x'));
    FAIL() << "4 MiB fit on a disk of 1 MiB";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(error.summary().find("a.bin: No space left on device"), std::string::npos);
    EXPECT_NE(error.summary().find("bytes wanted"), std::string::npos);
  }
  EXPECT_EQ(entries(disk.path()), 0u);
}

TEST(AtomicFile, NamesAFolderThatIsNotThere) {
  TemporaryFolder const folder;

  try {
    write_file(folder / "none/a.txt", "x");
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(error.summary().find("none/a.txt: No such file"), std::string::npos);
  }
}

TEST(InputFile, ReadsAndWritesBehindFourGibibytes) {
  TemporaryFolder const folder;
  std::uint64_t const far = (std::uint64_t{5} << 30) + 3;
  std::string const bytes = "behind 32 bits";
  AtomicFile file(folder / "sparse");
  file.write_at(far, std::as_bytes(std::span(bytes)));
  file.commit(Durability::cached);

  std::string read(bytes.size(), ' ');
  InputFile const input(folder / "sparse");
  input.read_at(far, std::as_writable_bytes(std::span(read)));

  EXPECT_EQ(read, bytes);
  EXPECT_EQ(input.size(), far + bytes.size());
}

TEST(InputFile, RefusesFoldersPipesAndMissingFilesWithoutHanging) {
  TemporaryFolder const folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);

  for (auto const& path : {folder.path(), folder / "pipe", folder / "none"}) try {
      InputFile const input(path);
      FAIL() << path << " was opened";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input);
      EXPECT_NE(error.summary().find(path.string()), std::string::npos);
    }
}

TEST(InputFile, RefusesToReadPastTheEndAndAfterACut) {
  TemporaryFolder const folder;
  write_file(folder / "a", "0123456789");
  InputFile const input(folder / "a");
  std::byte buffer[8];

  EXPECT_THROW(input.read_at(5, buffer), Error);
  EXPECT_THROW(input.read_at(std::numeric_limits<std::uint64_t>::max(), buffer), Error);
  ASSERT_EQ(::truncate((folder / "a").c_str(), 4), 0);
  EXPECT_THROW(input.read_at(0, buffer), Error);
}

TEST(ReadFile, RefusesMoreThanItsLimit) {
  TemporaryFolder const folder;
  write_file(folder / "a", "0123456789");

  EXPECT_EQ(read_file(folder / "a", 10), "0123456789");
  EXPECT_THROW(read_file(folder / "a", 9), Error);
}

TEST(HashFile, IsXxh3OfTheContent) {
  TemporaryFolder const folder;
  write_file(folder / "empty", "");
  write_file(folder / "long", std::string((3 << 20) + 1, 'v'));
  write_file(folder / "other", std::string(3 << 20, 'v') + "w");

  EXPECT_EQ(hex(hash_file(folder / "empty").xxh3), "2d06800538d394c2");  // xxhash's own vector
  EXPECT_EQ(hash_file(folder / "long").bytes, (3u << 20) + 1);
  EXPECT_NE(hash_file(folder / "long").xxh3, hash_file(folder / "other").xxh3);
}

}  // namespace
}  // namespace vlrerank
