// support/small_disk.hpp -- a file system of a few bytes, for tests of full disks (root only).
#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace vlrerank {

/// A tmpfs mounted on `folder`; left unmounted where the system refuses, see why_not().
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path folder, std::size_t bytes) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    auto const options = "size=" + std::to_string(bytes);
    if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, options.c_str()) != 0)
      why_not_ = std::string("no small tmpfs can be mounted here: ") + std::strerror(errno);
  }
  ~SmallDisk() {
    if (why_not_.empty()) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(SmallDisk const&) = delete;
  SmallDisk& operator=(SmallDisk const&) = delete;

  /// Empty when the disk is there.
  std::string const& why_not() const { return why_not_; }
  std::filesystem::path const& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string why_not_;
};

}  // namespace vlrerank
