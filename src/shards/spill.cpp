// shards/spill.cpp -- the unnamed file is made by mkstemp and unlinked at once: a killed process
// leaves nothing behind, on every file system.
#include "shards/spill.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "io/files.hpp"

namespace vlrerank {

Spill::Spill(std::filesystem::path folder, std::size_t limit)
    : folder_(std::move(folder)), limit_(limit) {}

Spill::~Spill() {
  if (fd_ >= 0) ::close(fd_);
}

void Spill::append(std::span<std::byte const> bytes) {
  if (buffer_.size() + bytes.size() > limit_) flush();
  if (bytes.size() <= limit_) {
    auto const wanted = buffer_.size() + bytes.size();
    if (wanted > buffer_.capacity())
      buffer_.reserve(std::min(limit_, std::max(wanted, 2 * buffer_.capacity())));
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), limit_))) {
    auto const piece = bytes.first(std::min(bytes.size(), limit_));
    buffer_.assign(piece.begin(), piece.end());
    flush();
  }
}

void Spill::flush() {
  if (fd_ < 0) {
    std::string name = (folder_ / ".spill-XXXXXX").string();
    fd_ = ::mkstemp(name.data());
    if (fd_ < 0) throw_io_error("create a temporary file in", folder_ / ".", errno, 0, VLR_WHERE);
    ::unlink(name.c_str());
  }
  for (std::size_t done = 0; done < buffer_.size();) {
    auto const count = ::pwrite(fd_, buffer_.data() + done, buffer_.size() - done,
                                static_cast<off_t>(on_disk_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw_io_error("write a temporary file in", folder_ / ".", count < 0 ? errno : EIO,
                     buffer_.size() - done, VLR_WHERE);
    done += static_cast<std::size_t>(count);
  }
  on_disk_ += buffer_.size();
  buffer_.clear();
}

void Spill::for_each(
    std::function<void(std::uint64_t, std::span<std::byte const>)> const& visit) const {
  std::vector<std::byte> window(std::min<std::uint64_t>(on_disk_, std::uint64_t{4} << 20));
  for (std::uint64_t done = 0; done < on_disk_;) {
    auto const wanted = std::min<std::uint64_t>(window.size(), on_disk_ - done);
    auto const count = ::pread(fd_, window.data(), wanted, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw_io_error("read a temporary file in", folder_ / ".", count < 0 ? errno : EIO, wanted,
                     VLR_WHERE);
    visit(done, std::span(window).first(static_cast<std::size_t>(count)));
    done += static_cast<std::uint64_t>(count);
  }
  if (!buffer_.empty()) visit(on_disk_, buffer_);
}

}  // namespace vlrerank
