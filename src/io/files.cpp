// io/files.cpp -- files over POSIX calls: pread and pwrite in pieces below 2 GiB, fsync, rename.
#include "io/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_transfer = std::size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB

std::uint64_t free_bytes(fs::path const& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return 0;
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

fs::path folder_of(fs::path const& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Makes a rename or a new name in `directory` last. File systems that cannot are left alone.
void sync_folder(fs::path const& directory) {
  int const fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  int const status = ::fsync(fd);
  int const code = errno;
  ::close(fd);
  if (status != 0 && code != EINVAL && code != ENOTSUP)
    throw_io_error("sync", directory, code, 0, VLR_WHERE);
}

}  // namespace

void throw_io_error(std::string_view action, fs::path const& path, int code, std::uint64_t wanted,
                    std::string_view where) {
  std::string what = text("cannot ", action, " ", path.string(), ": ", std::strerror(code));
  if (code == ENOSPC || code == EDQUOT) {
    what += text(" (", wanted, " bytes wanted, ", free_bytes(folder_of(path)), " free)");
    throw Error(Exit::io, what, "free space there or choose another folder, then run again", where);
  }
  throw Error(Exit::io, what, "check the disk, the permissions and the path", where);
}

void require_space(fs::path const& directory, std::uint64_t bytes) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return;  // the write itself will tell
  std::uint64_t const left = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  VLR_IO(
      left >= bytes,
      text("no space left in ", directory.string(), ": ", bytes, " bytes wanted, ", left, " free"),
      "free space there or choose another folder, then run again");
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  temporary_ = folder_of(path_) / text(".", path_.filename().string(), ".tmp");
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw_io_error("create", path_, errno, 0, VLR_WHERE);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::string_view bytes) {
  write_at(end_, std::as_bytes(std::span(bytes)));
  end_ += bytes.size();
}

void AtomicFile::write_at(std::uint64_t offset, std::span<std::byte const> bytes) {
  while (!bytes.empty()) {
    auto const piece = std::min(bytes.size(), largest_transfer);
    auto const done = ::pwrite(fd_, bytes.data(), piece, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_io_error("write", path_, done < 0 ? errno : EIO, bytes.size(), VLR_WHERE);
    offset += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void AtomicFile::commit(Durability durability) {
  if (durability == Durability::synced && ::fsync(fd_) != 0)
    throw_io_error("sync", path_, errno, 0, VLR_WHERE);
  int const closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) throw_io_error("close", path_, errno, 0, VLR_WHERE);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    throw_io_error("rename to", path_, errno, 0, VLR_WHERE);
  committed_ = true;
  if (durability == Durability::synced) sync_folder(folder_of(path_));
}

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  // O_NONBLOCK: a FIFO of that name must not hang us; regular files ignore it.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  VLR_INPUT(fd_ >= 0, text("cannot open ", path_.string(), ": ", std::strerror(errno)),
            "check the path and its permissions");
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw Error(Exit::input, text(path_.string(), " is not a regular file"), "name a file",
                VLR_WHERE);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() {
  ::close(fd_);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  VLR_INPUT(offset <= size_ && out.size() <= size_ - offset,
            text(path_.string(), " ends at byte ", size_, ", bytes ", offset, " to ",
                 offset + out.size(), " were expected in it"),
            "the file was cut: make or fetch it again");
  while (!out.empty()) {
    auto const piece = std::min(out.size(), largest_transfer);
    auto const done = ::pread(fd_, out.data(), piece, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_io_error("read", path_, errno, 0, VLR_WHERE);
    VLR_INPUT(done > 0, text(path_.string(), " was cut at byte ", offset, " while it was read"),
              "make or fetch the file again, and leave it alone while the job runs");
    offset += static_cast<std::uint64_t>(done);
    out = out.subspan(static_cast<std::size_t>(done));
  }
}

std::string read_file(fs::path const& path, std::uint64_t limit) {
  InputFile const file(path);
  VLR_INPUT(file.size() <= limit,
            text(path.string(), " has ", file.size(), " bytes, at most ", limit, " are read"),
            "check that it is the right file");
  std::string bytes(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void write_file(fs::path const& path, std::string_view bytes, Durability durability) {
  AtomicFile file(path);
  file.append(bytes);
  file.commit(durability);
}

void make_directories(fs::path const& directory) {
  std::error_code code;
  fs::create_directories(directory, code);
  if (code) throw_io_error("make the folder", directory, code.value(), 0, VLR_WHERE);
}

void rename_file(fs::path const& from, fs::path const& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io_error("rename to", to, errno, 0, VLR_WHERE);
  sync_folder(folder_of(to));
}

FileHash hash_file(fs::path const& path) {
  InputFile const file(path);
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> const state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> window(std::size_t{1} << 20);
  for (std::uint64_t done = 0; done < file.size();) {
    auto const piece = std::min<std::uint64_t>(window.size(), file.size() - done);
    auto const part = std::span(window).first(piece);
    file.read_at(done, part);
    XXH3_64bits_update(state.get(), part.data(), part.size());
    done += piece;
  }
  return {file.size(), XXH3_64bits_digest(state.get())};
}

std::string hex(std::uint64_t value) {
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4)
    digits[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return digits;
}

}  // namespace vlrerank
