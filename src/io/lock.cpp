// io/lock.cpp -- flock on a file that may vanish while one waits for it.
#include "io/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/files.hpp"

namespace vlrerank {
namespace {

/// Whether the name still leads to the open file: its last owner may have removed it.
bool is_current(int fd, std::filesystem::path const& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(std::filesystem::path path) : path_(std::move(path)) {
  for (;;) {
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw_io_error("cannot create", path_, errno, 0, VLR_WHERE);
    while (flock(fd_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      int const code = errno;
      close(fd_);
      throw_io_error("cannot lock", path_, code, 0, VLR_WHERE);
    }
    if (is_current(fd_, path_)) return;
    close(fd_);
  }
}

FileLock::~FileLock() {
  unlink(path_.c_str());
  close(fd_);
}

}  // namespace vlrerank
