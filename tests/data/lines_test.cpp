// lines_test.cpp -- lines come out alike from plain, gzip and zstd files, whatever their ends.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "data/rows.hpp"

namespace vlrerank {
namespace {

using Lines = std::vector<std::pair<std::int64_t, std::string>>;

std::string write(std::string const& name, std::string const& bytes) {
  auto const path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

Lines lines_of(std::string const& path) {
  Lines lines;
  for_each_line(path, [&](std::int64_t number, std::string_view bytes) {
    lines.emplace_back(number, std::string(bytes));
  });
  return lines;
}

std::string gzip(std::string const& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string const& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return out;
}

std::string many_lines() {
  std::string bytes;
  for (int i = 0; i < 60000; ++i) bytes += "{\"line\": " + std::to_string(i) + "}\n";
  return bytes + std::string(1 << 20, 'x');
}

TEST(Lines, SkipsMarksCarriageReturnsAndBlankLines) {
  auto const path = write("ends.jsonl",
                          "\xEF\xBB\xBF"
                          "a\r\n\r\n \t\nb\xE2\x80\xA8"
                          "c\rd\n\xEF\xBB\xBF"
                          "e");

  EXPECT_EQ(lines_of(path), (Lines{{1, "a"},
                                   {4,
                                    "b\xE2\x80\xA8"
                                    "c\rd"},
                                   {5,
                                    "\xEF\xBB\xBF"
                                    "e"}}));
}

TEST(Lines, AnEmptyFileHasNone) {
  EXPECT_TRUE(lines_of(write("empty.jsonl", "")).empty());
  EXPECT_TRUE(lines_of(write("blank.jsonl", "\n\n  \n")).empty());
}

TEST(Lines, CompressedFilesGiveTheSameLines) {
  auto const bytes = many_lines();
  auto const plain = lines_of(write("many.jsonl", bytes));

  ASSERT_EQ(plain.size(), 60001u);
  EXPECT_EQ(plain.back().second.size(), std::size_t{1} << 20);
  EXPECT_EQ(lines_of(write("many.jsonl.gz", gzip(bytes))), plain);
  EXPECT_EQ(lines_of(write("many.jsonl.zst", zstd(bytes))), plain);
}

TEST(Lines, JoinedCompressedFilesAreReadToTheEnd) {
  auto const want = Lines{{1, "a"}, {2, "b"}};

  EXPECT_EQ(lines_of(write("joined.gz", gzip("a\n") + gzip("b\n"))), want);
  EXPECT_EQ(lines_of(write("joined.zst", zstd("a\n") + zstd("b\n"))), want);
}

TEST(Lines, OutputThatFillsItsBufferExactlyEndsWell) {
  std::string const bytes(std::size_t{1} << 19, 'x');

  EXPECT_EQ(lines_of(write("exact.zst", zstd(bytes))), (Lines{{1, bytes}}));
  EXPECT_EQ(lines_of(write("exact.gz", gzip(bytes))), (Lines{{1, bytes}}));
}

TEST(Lines, DamagedAndMissingFilesAreNamed) {
  auto const fails = [](std::string const& path) {
    try {
      lines_of(path);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), Exit::input);
      EXPECT_NE(error.summary().find(path), std::string::npos) << error.summary();
      return;
    }
    ADD_FAILURE() << path;
  };
  auto const gz = gzip(many_lines());
  auto const zst = zstd(many_lines());
  fails(write("cut.gz", gz.substr(0, gz.size() / 2)));
  fails(write("cut.zst", zst.substr(0, zst.size() / 2)));
  fails(write("bad.gz", gz.substr(0, 10) + std::string(100, '\xFF')));
  fails(write("utf16.jsonl", std::string("\xFF\xFE{\0", 4)));
  fails("/nowhere/rows.jsonl");
  fails(testing::TempDir());
}

}  // namespace
}  // namespace vlrerank
