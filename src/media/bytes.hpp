// media/bytes.hpp -- bounded reading of a header, from memory or from an open file.
// The header parsers read through this, so that a probe of a million files touches only their
// heads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vlrerank {

enum class Order { little, big };

/// Random access to the bytes of a picture. Does not own them.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}
  ByteReader(int file, std::uint64_t size) : file_(file), size_(size) {}

  std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset` on; false when that reaches beyond the end.
  bool read(std::uint64_t offset, std::span<std::uint8_t> out) const;

  /// N bytes as an unsigned number; false when they reach beyond the end.
  template <std::size_t N, class Value>
  bool number(std::uint64_t offset, Order order, Value& value) const {
    std::array<std::uint8_t, N> raw;
    if (!read(offset, raw)) return false;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum = sum << 8 | raw[order == Order::big ? i : N - 1 - i];
    value = static_cast<Value>(sum);
    return true;
  }

 private:
  std::string_view bytes_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace vlrerank
