// io/files.hpp -- files that appear whole or not at all, exact reads at 64-bit offsets, hashes.
// Every failure of the operating system becomes an Error that names path, cause and space left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace vlrerank {

/// Whether a finished file must outlive a power cut, or only the end of this process.
enum class Durability { synced, cached };

/// A new file under a temporary name in the folder of its final one.
///
/// commit() gives it the final name; without commit the destructor removes it. An older file of
/// the final name stays whole until then. Errors: exit 74, naming the final path.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;

  /// The name the file has until commit(): for libraries that open files by name.
  std::filesystem::path const& temporary() const { return temporary_; }
  /// Appends after what append() wrote before.
  void append(std::string_view bytes);
  void write_at(std::uint64_t offset, std::span<std::byte const> bytes);
  /// Syncs as asked, renames, syncs the folder.
  void commit(Durability durability = Durability::synced);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  std::uint64_t end_ = 0;
  bool committed_ = false;
};

/// A regular file open for reading at any position. read_at() is thread-safe.
class InputFile {
 public:
  /// Throws Error (exit 3) when the file is missing, unreadable or not a regular file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  /// Bytes at the time of opening.
  std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset`. Throws Error: exit 3 past the end, exit 74 when the disk fails.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole file, of at most `limit` bytes (exit 3 above it).
std::string read_file(std::filesystem::path const& path, std::uint64_t limit = 1ull << 32);
/// AtomicFile in one call.
void write_file(std::filesystem::path const& path, std::string_view bytes,
                Durability durability = Durability::synced);
/// Makes a folder and its parents. Throws Error (exit 74).
void make_directories(std::filesystem::path const& directory);
/// Gives a file its final name and syncs the folder. Throws Error (exit 74).
void rename_file(std::filesystem::path const& from, std::filesystem::path const& to);

struct FileHash {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};
/// XXH3 (64 bit) of a file's content, read once in pieces of 1 MiB.
FileHash hash_file(std::filesystem::path const& path);
/// 16 lower-case hexadecimal digits.
std::string hex(std::uint64_t value);

/// Throws Error (exit 74) when the file system of `directory` has less than `bytes` left for us.
void require_space(std::filesystem::path const& directory, std::uint64_t bytes);
/// Throws the Error (exit 74) for a failed system call: "cannot write PATH: No space left ...".
/// @param code  errno; ENOSPC and EDQUOT also tell the bytes wanted and those left
[[noreturn]] void throw_io_error(std::string_view action, std::filesystem::path const& path,
                                 int code, std::uint64_t wanted, std::string_view where);

}  // namespace vlrerank
