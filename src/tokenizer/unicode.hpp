// tokenizer/unicode.hpp -- what the tokenizer must know of a code point, and UTF-8 in and out.
// Classes come from tables of our own (unicode_tables.inc), so that ids do not depend on the
// Unicode version of the installed libraries; utf8proc does the composing itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vlrerank {

/// Bits of a code point's class.
enum CodeClass : std::uint8_t {
  kLetter = 1,  ///< \p{L}
  kNumber = 2,  ///< \p{N}
  kSpace = 4,   ///< \s
  kActive = 8,  ///< NFC may change or move it, or compose it with what stands before
};

/// One byte for each code point up to U+10FFFF, bits as above. Built once, then read-only.
std::uint8_t const* code_classes();

/// A decoded character: `bytes` is its length in UTF-8.
struct CodePoint {
  char32_t value;
  std::uint32_t bytes;
};

/// Decodes one character of valid UTF-8.
inline CodePoint decode_utf8(char const* at) {
  auto const byte = [at](int i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(at[i]));
  };
  auto const low = [&byte](int i) { return byte(i) & 0x3f; };
  auto const first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | low(1), 2};
  if (first < 0xf0) return {(first & 0x0f) << 12 | low(1) << 6 | low(2), 3};
  return {(first & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4};
}

/// Length of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms).
std::size_t valid_utf8_prefix(std::string_view text);

/// NFC of valid UTF-8. Text that is in that form already comes back as it is, uncopied;
/// otherwise `storage` holds the result.
std::string_view nfc(std::string_view text, std::string& storage);

/// Valid UTF-8 for any bytes: each byte that is no part of a character becomes U+FFFD.
std::string_view repair_utf8(std::string_view text, std::string& storage);

}  // namespace vlrerank
