// metrics/tensorboard.cpp -- TFRecord frames around hand-encoded Event messages.
// Field numbers: tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto.
#include "metrics/tensorboard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "io/files.hpp"

namespace vlrerank {
namespace {

static_assert(std::endian::native == std::endian::little, "TFRecords are little-endian");

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 1U) != 0 ? 0x82f63b78U ^ (crc >> 1) : crc >> 1;  // Castagnoli, reflected
    table[byte] = crc;
  }
  return table;
}

/// CRC-32C, rotated and shifted, so that a CRC stored among the data it covers does no harm.
std::uint32_t masked_crc(std::string_view bytes) {
  static constexpr auto table = make_crc_table();
  std::uint32_t crc = ~0U;
  for (char const c : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xa282ead8U;
}

template <class Number>
std::string raw_bytes(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

std::string key(std::uint64_t field, WireType type) {
  return varint(field << 3 | type);
}
std::string number_field(std::uint64_t field, std::uint64_t value) {
  return key(field, kVarint) + varint(value);
}
std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return key(field, kLengthDelimited) + varint(bytes.size()) + std::string(bytes);
}
std::string float_field(std::uint64_t field, float value) {
  return key(field, kFixed32) + raw_bytes(value);
}
std::string double_field(std::uint64_t field, double value) {
  return key(field, kFixed64) + raw_bytes(value);
}

double wall_time() {
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Event: wall_time = 1, step = 2, then one of file_version = 3, summary = 5, session_log = 7.
std::string event(std::int64_t step, std::string const& content) {
  return double_field(1, wall_time()) + number_field(2, static_cast<std::uint64_t>(step)) + content;
}

/// Summary: value = 1; Value: tag = 1 and the rest.
std::string summary(std::string_view tag, std::string const& value) {
  return bytes_field(5, bytes_field(1, bytes_field(1, tag) + value));
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data()
                                                                             : "localhost";
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(std::filesystem::path const& directory,
                                     std::int64_t first_step) {
  static std::atomic<int> files{0};  // of this process: two files of one second differ
  path_ = directory / fmt::format("events.out.tfevents.{:010d}.{}.{}.{}",
                                  static_cast<std::int64_t>(wall_time()), host_name(), ::getpid(),
                                  files++);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_io_error("open", path_, errno, 0, VLR_WHERE);
  record(event(0, bytes_field(3, "brain.Event:2")));
  constexpr std::uint64_t session_starts = 1;
  if (first_step > 0) record(event(first_step, bytes_field(7, number_field(1, session_starts))));
}

TensorBoardWriter::~TensorBoardWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void TensorBoardWriter::scalar(std::string_view tag, std::int64_t step, double value) {
  record(event(step, summary(tag, float_field(2, static_cast<float>(value)))));
}

void TensorBoardWriter::note(std::string_view tag, std::int64_t step, std::string_view markdown) {
  constexpr std::uint64_t string_type = 7;
  auto const shape = bytes_field(2, bytes_field(2, number_field(1, 1)));  // one dimension of size 1
  auto const tensor = number_field(1, string_type) + shape + bytes_field(8, markdown);
  auto const metadata = bytes_field(1, bytes_field(1, "text"));  // plugin_data.plugin_name
  record(event(step, summary(tag, bytes_field(9, metadata) + bytes_field(8, tensor))));
}

void TensorBoardWriter::record(std::string const& event_bytes) {
  auto const length = raw_bytes(static_cast<std::uint64_t>(event_bytes.size()));
  auto const frame =
      length + raw_bytes(masked_crc(length)) + event_bytes + raw_bytes(masked_crc(event_bytes));
  std::size_t done = 0;
  while (done < frame.size()) {
    auto const count = ::write(fd_, frame.data() + done, frame.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error("write", path_, errno, frame.size() - done, VLR_WHERE);
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace vlrerank
