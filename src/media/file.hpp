// media/file.hpp -- opening a file that a row names: regular files only, below the root if one is
// given, never blocking.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "core/handle.hpp"

namespace vlrerank {

inline void close_file(int descriptor) noexcept {
  ::close(descriptor);
}
using FileHandle = Handle<int, close_file>;

struct OpenFile {
  FileHandle handle;
  std::uint64_t size = 0;  ///< bytes, never 0
};

/// @param root  "": any file. Else the file must lie below it after all links are followed, and
///              the path must not contain "..".
/// Throws Error (exit 3) naming the path: missing, a directory, a FIFO, a device, empty, outside.
OpenFile open_regular(std::string const& path, std::string const& root);

/// All bytes of an open file.
std::string read_all(OpenFile const& file, std::string const& path);

}  // namespace vlrerank
