// media/exif.cpp -- the first directory of a TIFF structure: sizes of a TIFF file, and the
// orientation in an EXIF block. Reads both byte orders, classic and big TIFF.
// Source: TIFF 6.0, section 2; EXIF 2.32, 4.5.
#include <algorithm>

#include "media/header.hpp"

namespace vlrerank {
namespace {

constexpr std::uint64_t max_entries = 4096;
constexpr int tag_width = 256;
constexpr int tag_height = 257;
constexpr int tag_orientation = 274;

/// Lengths and places that differ between classic (32-bit) and big (64-bit) files.
struct Layout {
  Order order;
  std::uint64_t first;       ///< offset of the first directory
  std::uint64_t count_size;  ///< bytes of the number of entries
  std::uint64_t entry_size;
  std::uint64_t value_at;  ///< place of the value inside an entry
};

std::optional<Layout> read_layout(ByteReader const& bytes, std::uint64_t start) {
  std::uint16_t mark = 0;
  if (!bytes.number<2>(start, Order::big, mark)) return {};
  if (mark != 0x4949 && mark != 0x4d4d) return {};
  auto const order = mark == 0x4949 ? Order::little : Order::big;
  std::uint16_t version = 0;
  std::uint64_t first = 0;
  if (!bytes.number<2>(start + 2, order, version)) return {};
  if (version == 42 && bytes.number<4>(start + 4, order, first))
    return Layout{order, first, 2, 12, 8};
  if (version == 43 && bytes.number<8>(start + 8, order, first))
    return Layout{order, first, 8, 20, 12};
  return {};
}

/// An integer value that stands inside its entry; 0 for other types.
std::uint32_t entry_value(ByteReader const& bytes, std::uint64_t entry, Layout const& layout) {
  std::uint16_t type = 0;
  std::uint32_t value = 0;
  if (!bytes.number<2>(entry + 2, layout.order, type)) return 0;
  auto const at = entry + layout.value_at;
  bool known = false;
  if (type == 1) known = bytes.number<1>(at, layout.order, value);
  if (type == 3) known = bytes.number<2>(at, layout.order, value);
  if (type == 4) known = bytes.number<4>(at, layout.order, value);
  if (type == 16) {
    std::uint64_t wide = 0;
    known = bytes.number<8>(at, layout.order, wide) && wide <= 0xffffffff;
    value = static_cast<std::uint32_t>(wide);
  }
  return known ? value : 0;
}

}  // namespace

std::optional<TiffDirectory> read_tiff_directory(ByteReader const& bytes, std::uint64_t start) {
  auto const layout = read_layout(bytes, start);
  if (!layout || layout->first > bytes.size()) return {};
  auto const directory = start + layout->first;
  std::uint64_t count = 0;
  bool const counted = layout->count_size == 2 ? bytes.number<2>(directory, layout->order, count)
                                               : bytes.number<8>(directory, layout->order, count);
  if (!counted) return {};
  TiffDirectory found;
  for (std::uint64_t i = 0; i < std::min(count, max_entries); ++i) {
    auto const entry = directory + layout->count_size + i * layout->entry_size;
    std::uint16_t tag = 0;
    if (!bytes.number<2>(entry, layout->order, tag)) break;
    if (tag == tag_width) found.width = entry_value(bytes, entry, *layout);
    if (tag == tag_height) found.height = entry_value(bytes, entry, *layout);
    if (tag == tag_orientation) {
      auto const value = entry_value(bytes, entry, *layout);
      if (value >= 1 && value <= 8) found.orientation = static_cast<std::int32_t>(value);
    }
  }
  return found;
}

std::int32_t read_exif_orientation(ByteReader const& bytes, std::uint64_t start) {
  std::uint32_t mark = 0;
  if (bytes.number<4>(start, Order::big, mark) && mark == 0x45786966) start += 6;  // "Exif" 0 0
  auto const directory = read_tiff_directory(bytes, start);
  return directory ? directory->orientation : 1;
}

}  // namespace vlrerank
