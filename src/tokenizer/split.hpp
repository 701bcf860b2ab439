// tokenizer/split.hpp -- cuts text into the pieces within which bytes are merged.
// Qwen's regular expression is matched by hand (split_qwen); any other one by PCRE2 (SplitPattern).
// A test holds both to the same pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/unicode.hpp"

namespace vlrerank {

/// The expression that split_qwen() implements, as it stands in tokenizer.json.
inline constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace split_detail {

/// Length of the contraction after an apostrophe, case aside ('s, 't, 're, ...), 0 if there is
/// none.
inline std::size_t contraction_bytes(std::string_view rest) {
  auto const letter = [rest](std::size_t i) {
    return i < rest.size() ? static_cast<char>(rest[i] | 0x20) : '\0';
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:  // U+017F, the long s, is an s when case is put aside
      return rest.substr(1, 2) == "\xC5\xBF" ? 3 : 0;
  }
}

}  // namespace split_detail

/// Calls visit(piece) for every piece of `text` in order; together they are the whole text.
/// @param text     valid UTF-8
/// @param classes  code_classes()
template <class Visit>
void split_qwen(std::string_view text, std::uint8_t const* classes, Visit&& visit) {
  constexpr std::uint8_t kWord = kLetter | kNumber;
  constexpr std::uint8_t kAny = kLetter | kNumber | kSpace;
  auto const size = text.size();
  auto const look = [&](std::size_t at) { return decode_utf8(text.data() + at); };
  auto const class_at = [&](std::size_t at) { return classes[look(at).value]; };
  // The end of the run of characters whose class has one of `wanted` (or none of `unwanted`).
  auto const letters_from = [&](std::size_t at) {
    while (at < size) {
      auto const c = look(at);
      if (!(classes[c.value] & kLetter)) break;
      at += c.bytes;
    }
    return at;
  };
  auto const others_from = [&](std::size_t at) {
    while (at < size) {
      auto const c = look(at);
      if (classes[c.value] & kAny) break;
      at += c.bytes;
    }
    while (at < size && (text[at] == '\r' || text[at] == '\n')) ++at;
    return at;
  };

  std::size_t at = 0;
  while (at < size) {
    auto const first = look(at);
    auto const kind = classes[first.value];
    auto const next = at + first.bytes;
    auto end = next;
    if (kind & kLetter) {
      end = letters_from(next);
    } else if (kind & kNumber) {
      // each digit alone
    } else {
      bool const newline = first.value == '\r' || first.value == '\n';
      auto const short_form =
          first.value == '\'' ? split_detail::contraction_bytes(text.substr(at)) : 0;
      auto const next_kind = next < size ? class_at(next) : std::uint8_t{0};
      if (short_form > 0) {
        end = at + short_form;
      } else if (!newline && (next_kind & kLetter)) {
        end = letters_from(next);
      } else if (!(kind & kSpace)) {
        end = others_from(next);
      } else if (first.value == ' ' && next < size && !(next_kind & (kWord | kSpace))) {
        end = others_from(next);
      } else {
        // White space: up to its last line break; without one all of it, less the last character
        // when something follows, which that takes along.
        std::size_t after_break = 0;
        std::size_t last = at;
        end = at;
        while (end < size) {
          auto const c = look(end);
          if (!(classes[c.value] & kSpace)) break;
          last = end;
          end += c.bytes;
          if (c.value == '\r' || c.value == '\n') after_break = end;
        }
        if (after_break > 0) {
          end = after_break;
        } else if (end < size && last > at) {
          end = last;
        }
      }
    }
    visit(text.substr(at, end - at));
    at = end;
  }
}

/// A compiled regular expression of a `Split` pre-tokeniser with behaviour "Isolated".
class SplitPattern {
 public:
  /// Throws Error (exit 3) when the expression cannot be compiled.
  explicit SplitPattern(std::string const& pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;

  /// Appends the pieces of `text`: the matches, and what stands between them. Thread-safe.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace vlrerank
