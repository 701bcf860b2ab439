// io/seal.cpp -- layout of the seal: 16 bytes of name, then u64: bytes of the file, XXH3 of the
// structure, number of extents, XXH3 of the seal's other bytes; at 64 the extents as u64 pairs.
#include "io/seal.hpp"

#include <fcntl.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "io/files.hpp"

namespace vlrerank::hdf5 {
namespace {

constexpr std::string_view magic = "vlrerank flat 1\n";
constexpr char const* remake = "make it again with the command that wrote it";

using Words = std::array<std::uint64_t, seal_bytes / 8>;
constexpr std::size_t size_word = 2, structure_word = 3, count_word = 4, self_word = 5,
                      first_extent = 8;

/// XXH3 of the seal itself, the word that holds it taken as 0.
std::uint64_t hash_of(Words words) {
  words[self_word] = 0;
  return XXH3_64bits(words.data(), seal_bytes);
}

/// XXH3 of every byte behind the seal that is in none of the arrays; these are sorted.
std::uint64_t hash_structure(InputFile const& file, std::vector<Extent> const& arrays) {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> const state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> window(std::size_t{1} << 16);
  std::uint64_t at = seal_bytes;
  auto const add_until = [&](std::uint64_t end) {
    while (at < end) {
      auto const part = std::span(window).first(std::min<std::uint64_t>(window.size(), end - at));
      file.read_at(at, part);
      XXH3_64bits_update(state.get(), part.data(), part.size());
      at += part.size();
    }
  };
  for (auto const& array : arrays) {
    add_until(array.offset);
    at = array.offset + array.bytes;
  }
  add_until(file.size());
  return XXH3_64bits_digest(state.get());
}

}  // namespace

void write_seal(std::filesystem::path const& path, std::vector<Extent> arrays) {
  std::erase_if(arrays, [](Extent const& array) { return array.bytes == 0; });
  VLR_REQUIRE(arrays.size() <= most_sealed, text(arrays.size(), " arrays in ", path.string()),
              text("this is a bug in the caller: write at most ", most_sealed));
  std::sort(arrays.begin(), arrays.end(),
            [](Extent const& left, Extent const& right) { return left.offset < right.offset; });
  InputFile const file(path);
  Words words{};
  std::memcpy(words.data(), magic.data(), magic.size());
  words[size_word] = file.size();
  words[structure_word] = hash_structure(file, arrays);
  words[count_word] = arrays.size();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    words[first_extent + 2 * i] = arrays[i].offset;
    words[first_extent + 2 * i + 1] = arrays[i].bytes;
  }
  words[self_word] = hash_of(words);
  int const fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) throw_io_error("open", path, errno, 0, VLR_WHERE);
  auto const written = ::pwrite(fd, words.data(), seal_bytes, 0);
  int const code = written < 0 ? errno : EIO;
  ::close(fd);
  if (written != static_cast<ssize_t>(seal_bytes))
    throw_io_error("write", path, code, seal_bytes, VLR_WHERE);
}

void check_seal(std::filesystem::path const& path) {
  InputFile const file(path);
  Words words{};
  auto const head = std::min<std::uint64_t>(seal_bytes, file.size());
  file.read_at(0, std::as_writable_bytes(std::span(words)).first(head));
  VLR_INPUT(std::memcmp(words.data(), magic.data(), magic.size()) == 0,
            text(path.string(), " was not written by vlrerank, or its beginning is damaged"),
            remake);
  VLR_INPUT(words[self_word] == hash_of(words) && words[count_word] <= most_sealed,
            text(path.string(), " is damaged in its first ", seal_bytes, " bytes"), remake);
  VLR_INPUT(
      words[size_word] == file.size(),
      text(path.string(), " has ", file.size(), " bytes, it was written with ", words[size_word]),
      remake);
  std::vector<Extent> arrays;
  std::uint64_t end = seal_bytes;
  for (std::size_t i = 0; i < words[count_word]; ++i) {
    Extent const array{words[first_extent + 2 * i], words[first_extent + 2 * i + 1]};
    VLR_INPUT(array.offset >= end && array.offset <= file.size() &&
                  array.bytes <= file.size() - array.offset,
              text(path.string(), " lists arrays outside of it"), remake);
    end = array.offset + array.bytes;
    arrays.push_back(array);
  }
  VLR_INPUT(hash_structure(file, arrays) == words[structure_word],
            text(path.string(), " is damaged: the checksum of its structure differs"), remake);
}

}  // namespace vlrerank::hdf5
