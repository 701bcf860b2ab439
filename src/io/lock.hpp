// io/lock.hpp -- one job at a time on a folder, for as long as that job lives.
#pragma once

#include <filesystem>

namespace vlrerank {

/// Holds an exclusive lock on the file `path` (flock); the kernel releases it when the process
/// ends, however it ends. The file is removed on release. Waits until the lock is free.
class FileLock {
 public:
  /// Throws Error (exit 74) when the file cannot be made or locked.
  explicit FileLock(std::filesystem::path path);
  ~FileLock();
  FileLock(FileLock const&) = delete;
  FileLock& operator=(FileLock const&) = delete;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace vlrerank
