// tokenizer/unicode.cpp -- code point classes, UTF-8 repair, and NFC with the tokenizers package's
// own idea of which code points take part in it.
#include "tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "core/error.hpp"

namespace vlrerank {
namespace {

/// Code points from `first` up to, but without, `last`.
struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

namespace tables {
#include "tokenizer/unicode_tables.inc"
}  // namespace tables

template <std::size_t n>
void mark(std::vector<std::uint8_t>& classes, CodeRange const (&ranges)[n], CodeClass bit) {
  for (auto const& range : ranges) {
    for (auto c = range.first; c < range.last; ++c) classes[c] |= bit;
  }
}

/// Bytes of the character that starts at `at`, 0 if there is none.
std::size_t character_bytes(char const* at, std::size_t left) {
  auto const byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  auto const continues = [&](std::size_t i, unsigned low, unsigned high) {
    return i < left && byte(i) >= low && byte(i) <= high;
  };
  auto const first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    auto const low = first == 0xe0 ? 0xa0U : 0x80U;
    auto const high = first == 0xed ? 0x9fU : 0xbfU;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    auto const low = first == 0xf0 ? 0x90U : 0x80U;
    auto const high = first == 0xf4 ? 0x8fU : 0xbfU;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) && continues(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

/// Length of the leading run of ASCII.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t block;
    std::memcpy(&block, text.data() + at, 8);
    if (block & 0x8080808080808080ULL) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

void append_composed(std::string& out, std::string_view segment) {
  utf8proc_uint8_t* raw = nullptr;
  auto const bytes =
      utf8proc_map(reinterpret_cast<utf8proc_uint8_t const*>(segment.data()),
                   static_cast<utf8proc_ssize_t>(segment.size()), &raw,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const owner(raw, &std::free);
  VLR_REQUIRE(bytes >= 0, text("normalising failed: ", utf8proc_errmsg(bytes)),
              "this is a bug in the tokenizer: pass valid UTF-8 to nfc()");
  out.append(reinterpret_cast<char const*>(raw), static_cast<std::size_t>(bytes));
}

/// A mark that the installed utf8proc would move, although the tables of the tokenizer hold it for
/// an ordinary character: it was added to Unicode later.
bool moves_in_utf8proc(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class != 0;
}

}  // namespace

std::uint8_t const* code_classes() {
  static std::vector<std::uint8_t> const classes = [] {
    std::vector<std::uint8_t> made(0x110000, 0);
    mark(made, tables::kLetters, kLetter);
    mark(made, tables::kNumbers, kNumber);
    mark(made, tables::kSpaces, kSpace);
    mark(made, tables::kActive, kActive);
    return made;
  }();
  return classes.data();
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) break;
    auto const bytes = character_bytes(text.data() + at, text.size() - at);
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

std::string_view repair_utf8(std::string_view text, std::string& storage) {
  auto good = valid_utf8_prefix(text);
  if (good == text.size()) return text;
  storage.clear();
  while (!text.empty()) {
    storage.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    storage += "\xEF\xBF\xBD";
    text.remove_prefix(1);
    good = valid_utf8_prefix(text);
  }
  return storage;
}

std::string_view nfc(std::string_view text, std::string& storage) {
  auto const* const classes = code_classes();
  std::size_t copied = 0;  // text before this stands in storage already, once anything does
  bool changed = false;
  std::size_t base = 0;  // where the last character that NFC leaves alone begins
  bool has_base = false;
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at += ascii_prefix(text.substr(at));
      base = at - 1;
      has_base = true;
      continue;
    }
    auto const here = decode_utf8(text.data() + at);
    if (!(classes[here.value] & kActive)) {
      base = at;
      has_base = !moves_in_utf8proc(here.value);
      at += here.bytes;
      continue;
    }
    // A run of active characters, composed together with the base before it.
    auto const begin = has_base ? base : at;
    while (at < text.size()) {
      auto const next = decode_utf8(text.data() + at);
      if (!(classes[next.value] & kActive)) break;
      at += next.bytes;
    }
    if (!changed) storage.clear();
    changed = true;
    storage.append(text.substr(copied, begin - copied));
    append_composed(storage, text.substr(begin, at - begin));
    copied = at;
    has_base = false;
  }
  if (!changed) return text;
  storage.append(text.substr(copied));
  return storage;
}

}  // namespace vlrerank
