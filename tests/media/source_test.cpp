// tests/media/source_test.cpp -- what a row may name, and what happens when it is no picture.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "media/encoders.hpp"
#include "media/image.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

class Sources : public testing::Test {
 protected:
  Sources() {
    fs::create_directories(root_ / "inner");
    write(root_ / "a.png", picture_);
    write(root_ / "inner/b.png", picture_);
    write(folder_ / "secret.png", picture_);
  }
  ~Sources() override { fs::remove_all(folder_); }

  static void write(fs::path const& path, std::string const& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  /// The reason why reading, probing and loading a file fail; empty when they do not.
  std::string refusal(fs::path const& path, std::string const& root = "") const {
    ImageOptions options;
    options.root = root;
    std::string reason;
    try {
      probe_image({path.string(), ""}, options);
      load_image({path.string(), ""}, options);
      EXPECT_EQ(read_source({path.string(), ""}, options), picture_);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input);
      reason = error.summary();
      EXPECT_EQ(reason.find('\n'), std::string::npos);
      EXPECT_NE(reason.find(path.filename().string()), std::string::npos) << reason;
    }
    return reason;
  }

  std::string picture_ = encode_png({.size = {2, 2}, .rows = std::vector<std::uint8_t>(12, 50)});
  fs::path folder_ = fs::temp_directory_path() / text("vlrerank-sources-", ::getpid());
  fs::path root_ = folder_ / "root";
};

void expect_contains(std::string const& text, std::string const& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Sources, FilesAndInlineBytesAreRead) {
  EXPECT_EQ(refusal(root_ / "a.png"), "");
  EXPECT_EQ(load_image({"", picture_}, {}).source_size, (ImageSize{2, 2}));
  EXPECT_EQ(probe_image({"", picture_}, {}).format, "png");
}

TEST_F(Sources, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  write(root_ / "empty.png", "");
  write(root_ / "page.png", "<html><body>403</body></html>");

  expect_contains(refusal(root_ / "missing.png"), "No such file");
  expect_contains(refusal(root_ / "inner"), "directory");
  expect_contains(refusal(root_ / "pipe"), "FIFO");
  expect_contains(refusal("/dev/zero"), "device");
  expect_contains(refusal(root_ / "empty.png"), "empty");
  expect_contains(refusal(root_ / "page.png"), "HTML");
  EXPECT_THROW(read_source({"", ""}, {}), Error);
  EXPECT_THROW(read_source({std::string("a\0b", 3), ""}, {}), Error);
}

TEST_F(Sources, TheRootConfinesPaths) {
  fs::create_symlink(folder_ / "secret.png", root_ / "leak.png");
  fs::create_symlink(folder_, root_ / "up");
  fs::create_symlink("inner/b.png", root_ / "fine.png");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);

  EXPECT_EQ(refusal(root_ / "a.png", root_), "");
  EXPECT_EQ(refusal(root_ / "inner/b.png", root_), "");
  EXPECT_EQ(refusal(root_ / "fine.png", root_), "");
  expect_contains(refusal(folder_ / "secret.png", root_), "outside");
  expect_contains(refusal(root_ / "../secret.png", root_), "..");
  expect_contains(refusal(root_ / "inner/../a.png", root_), "..");
  expect_contains(refusal(root_ / "leak.png", root_), "outside");
  expect_contains(refusal(root_ / "up/secret.png", root_), "outside");
  expect_contains(refusal(root_ / "pipe", root_), "FIFO");
  expect_contains(refusal("/dev/null", root_), "outside");
}

TEST_F(Sources, ANeighbourWhoseNameBeginsLikeTheRootIsOutside) {
  fs::create_directories(folder_ / "root2");
  write(folder_ / "root2/c.png", picture_);

  expect_contains(refusal(folder_ / "root2/c.png", root_), "outside");
  EXPECT_EQ(refusal(root_ / "a.png", root_.string() + "/"), "");
}

TEST_F(Sources, AProbeReadsOnlyTheHeader) {
  auto const cut = picture_.substr(0, 40);
  write(root_ / "cut.png", cut);

  EXPECT_EQ(probe_image({(root_ / "cut.png").string(), ""}, {}).size, (ImageSize{2, 2}));
  expect_contains(refusal(root_ / "cut.png"), "cut.png");
}

}  // namespace
}  // namespace vlrerank
