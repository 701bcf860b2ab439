// media/source.cpp -- the bytes behind a source. Files named by a data set are not trusted: they
// may be links out of the root, FIFOs or devices.
#include "media/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "media/bytes.hpp"
#include "media/file.hpp"
#include "media/image.hpp"

namespace vlrerank {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 31;

void free_text(char* value) noexcept {
  std::free(value);
}

/// The path with every link followed; empty when there is no such file (errno tells why).
std::string real_path(std::string const& path) {
  Handle<char*, free_text> const resolved(::realpath(path.c_str(), nullptr));
  return resolved.get() == nullptr ? std::string() : std::string(resolved.get());
}

bool has_parent_step(std::string_view path) {
  while (!path.empty()) {
    auto const slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return false;
}

bool lies_below(std::string const& path, std::string const& root) {
  if (root == "/") return true;
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

void check_below(std::string const& path, std::string const& real, std::string const& root) {
  std::string_view rest = path;
  if (rest.starts_with(root)) rest.remove_prefix(root.size());
  VLR_INPUT(!has_parent_step(rest), text(path, " contains \"..\""),
            text("name files below the root ", root, " without leaving it"));
  auto const real_root = real_path(root);
  VLR_INPUT(!real_root.empty(), text("the root ", root, " does not exist"),
            "correct --image-root or create the folder");
  VLR_INPUT(lies_below(real, real_root), text(path, " lies outside the root ", root),
            "move the file below the root, or change --image-root");
}

char const* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void check_regular(struct stat const& facts, std::string const& path) {
  VLR_INPUT(S_ISREG(facts.st_mode), text(path, " is ", kind_of(facts.st_mode), ", not a file"),
            "name a regular file");
}

std::string why_missing(std::string const& path, int error) {
  if (path.find("http://") != std::string::npos || path.find("https://") != std::string::npos)
    return text(path, " is a web address, and nothing is downloaded");
  return text("cannot open ", path, ": ", std::strerror(error));
}

}  // namespace

bool ByteReader::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  if (offset > size_ || out.size() > size_ - offset) return false;
  if (file_ < 0) {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return true;
  }
  while (!out.empty()) {
    auto const count = ::pread(file_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

OpenFile open_regular(std::string const& path, std::string const& root) {
  VLR_INPUT(!path.empty(), "the path is empty", "name a file");
  VLR_INPUT(path.find('\0') == std::string::npos, "the path contains a NUL byte", "correct it");
  auto const real = real_path(path);
  VLR_INPUT(!real.empty(), why_missing(path, errno),
            "correct the path (relative ones start at --image-root or the data set's folder)");
  if (!root.empty()) check_below(path, real, root);
  // The kind is checked before opening (opening a device may act on it) and again on what was
  // opened; O_NONBLOCK keeps a FIFO put there in between from blocking.
  struct stat facts = {};
  VLR_INPUT(::stat(real.c_str(), &facts) == 0, why_missing(path, errno), "correct the path");
  check_regular(facts, path);
  int const descriptor =
      ::open(real.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  VLR_INPUT(descriptor >= 0, why_missing(path, errno), "make the file readable");
  OpenFile file{FileHandle(descriptor), 0};
  VLR_INPUT(::fstat(descriptor, &facts) == 0, why_missing(path, errno), "make it readable");
  check_regular(facts, path);
  VLR_INPUT(facts.st_size > 0, text(path, " is empty"), "replace the file or remove the row");
  file.size = static_cast<std::uint64_t>(facts.st_size);
  return file;
}

std::string read_all(OpenFile const& file, std::string const& path) {
  VLR_INPUT(file.size <= max_file_bytes, text(path, " is larger than 2 GiB"),
            "store the picture compressed");
  std::string bytes(file.size, '\0');
  std::span const out(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  VLR_IO(ByteReader(file.handle.get(), file.size).read(0, out),
         text("cannot read ", path, ": ", std::strerror(errno)),
         "check the disk; the file must not change while it is read");
  return bytes;
}

std::string read_source(ImageSource const& source, ImageOptions const& options) {
  if (source.path.empty()) {
    VLR_INPUT(!source.bytes.empty(), "the picture has neither a path nor bytes",
              "give one of them, or remove the picture from the row");
    return source.bytes;
  }
  return read_all(open_regular(source.path, options.root), source.path);
}

}  // namespace vlrerank
