// tokenizer/bpe.hpp -- byte-level byte-pair encoding: merges the pair of lowest rank, again and
// again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vlrerank {

/// What tokenizer.json says of the vocabulary, before it is put into tables.
struct BpeSource {
  struct Token {
    std::string text;  ///< as written in the file: every byte as one printable character
    std::int32_t id;
  };
  std::vector<Token> vocabulary;
  std::vector<std::string> merges;  ///< left, right, left, right, ... in order of rank
};

/// The vocabulary and merges as tables for encoding. Read-only after construction but for marks of
/// what was found out about whole tokens, which are relaxed atomics: any number of threads may
/// encode.
class Bpe {
 public:
  /// Throws Error (exit 3) when a merge names a token that is not in the vocabulary, or a byte has
  /// no token of its own.
  explicit Bpe(BpeSource const& source);

  /// Appends the ids of one piece.
  void encode(std::string_view piece, std::vector<std::int32_t>& out) const;
  /// The bytes of a token; empty for an id that the vocabulary lacks.
  std::string_view bytes(std::int32_t id) const;
  /// The id of the token that consists of these bytes, -1 if there is none.
  std::int32_t find(std::string_view bytes) const;
  /// The id of a token as the file writes it (every byte one printable character), if there is one.
  std::optional<std::int32_t> find_written(std::string_view written) const;
  /// One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(spans_.size()); }

 private:
  struct Merge {
    std::uint32_t rank;  ///< kNoRank: the pair is not merged
    std::int32_t id;
  };
  struct MergeSlot {
    std::uint64_t pair;
    Merge merge;
  };
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;
  };
  enum class Whole : std::uint8_t { unknown, yes, no };
  static constexpr std::uint32_t kNoRank = 0xffffffff;

  void add_token(std::string const& written, std::int32_t id);
  void index_tokens();
  void add_merge(std::int32_t left, std::int32_t right, Merge merge);
  Merge merge_of(std::int32_t left, std::int32_t right) const;
  void merge_short(std::string_view piece, std::vector<std::int32_t>& out) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& out) const;
  void merge_piece(std::string_view piece, std::vector<std::int32_t>& out) const;

  std::string arena_;                      ///< the bytes of all tokens, one after the other
  std::vector<Span> spans_;                ///< by id
  std::vector<std::int32_t> token_slots_;  ///< open hash of tokens by their bytes; -1 is free
  std::vector<MergeSlot> merge_slots_;     ///< open hash of pairs
  std::vector<Merge> byte_merges_;         ///< the same for two single bytes: [256 * 256]
  std::array<std::int32_t, 256> byte_ids_{};
  /// By id: does encoding the token's own bytes give that token alone? Most pieces of real text are
  /// whole tokens, and then one look-up is all there is to do.
  std::unique_ptr<std::atomic<Whole>[]> whole_;
};

}  // namespace vlrerank
