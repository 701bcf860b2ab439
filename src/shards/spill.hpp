// shards/spill.hpp -- bytes collected before their number is known: in memory first, then on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace vlrerank {

/// A growing run of bytes that keeps at most `limit` of them in memory. The rest lies in a file
/// without a name in `folder`, which the system frees when this object or the process ends.
class Spill {
 public:
  Spill(std::filesystem::path folder, std::size_t limit);
  ~Spill();
  Spill(Spill const&) = delete;
  Spill& operator=(Spill const&) = delete;

  /// Throws Error (exit 74) when the disk is full.
  void append(std::span<std::byte const> bytes);
  std::uint64_t size() const { return on_disk_ + buffer_.size(); }
  /// Calls `visit(offset, piece)` for all bytes in order.
  void for_each(std::function<void(std::uint64_t, std::span<std::byte const>)> const& visit) const;

 private:
  void flush();

  std::filesystem::path folder_;
  std::size_t limit_;
  std::vector<std::byte> buffer_;
  int fd_ = -1;
  std::uint64_t on_disk_ = 0;
};

}  // namespace vlrerank
