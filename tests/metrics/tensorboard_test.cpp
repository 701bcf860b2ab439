// tests/metrics/tensorboard_test.cpp -- bytes of an event file. That the real package reads it is
// shown by tests/python/test_tensorboard.py.
#include "metrics/tensorboard.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "metrics/folder.hpp"

namespace vlrerank {
namespace {

using TensorBoard = FolderTest;

std::string bytes_of(std::filesystem::path const& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(TensorBoard, BeginsWithTheVersionRecord) {
  TensorBoardWriter const writer(folder());
  auto const bytes = bytes_of(writer.path());

  // 26 bytes: time (1 + 8), step 0 (2), version (2 + 13); around them length and two checksums.
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length, 26U);
  EXPECT_EQ(bytes.size(), 8 + 4 + 26 + 4U);
  EXPECT_EQ(bytes.substr(8 + 4 + 13, 13), "brain.Event:2");
}

TEST_F(TensorBoard, RecordsAreInTheFileAsSoonAsTheyAreWritten) {
  TensorBoardWriter writer(folder());
  auto const before = bytes_of(writer.path()).size();
  writer.scalar("loss", 1, 0.5);

  EXPECT_GT(bytes_of(writer.path()).size(), before);
}

TEST_F(TensorBoard, TwoWritersOfOneFolderHaveTheirOwnFiles) {
  TensorBoardWriter const a(folder());
  TensorBoardWriter const b(folder());

  EXPECT_NE(a.path(), b.path());
}

TEST_F(TensorBoard, AFolderThatIsMissingIsNamed) {
  try {
    TensorBoardWriter const writer(folder() / "nowhere");
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos);
  }
}

}  // namespace
}  // namespace vlrerank
