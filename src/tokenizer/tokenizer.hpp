// tokenizer/tokenizer.hpp -- text to ids and back: Qwen's byte-level BPE, read from tokenizer.json.
// The steps are those of the file: added tokens are cut out, the rest is NFC-normalised, split by
// the file's regular expression, and each piece is merged bytewise by rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vlrerank {

/// What becomes of added tokens such as "<|im_end|>" that stand in the text.
enum class AddedTokens {
  parse,  ///< they become their one id, as the tokenizers library does by default
  plain,  ///< they are ordinary characters: nothing a user writes closes a turn
};

class Tokenizer {
 public:
  /// Reads `path`: a tokenizer.json, or a model directory that holds one.
  /// Throws Error (exit 3) naming the file when it is missing, malformed, or asks for a
  /// normaliser, pre-tokeniser or model that is not Qwen's.
  static Tokenizer load(std::filesystem::path const& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// @param text   UTF-8; invalid bytes are taken as U+FFFD each
  /// @return       ids, no BOS or EOS added. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, AddedTokens added) const;
  /// Appends to `out`, which saves an allocation in long loops.
  void encode(std::string_view text, AddedTokens added, std::vector<std::int32_t>& out) const;
  /// UTF-8 of the ids, special tokens included; throws Error on an id outside the vocabulary.
  std::string decode(std::span<std::int32_t const> ids) const;
  /// The id of a token written as in the vocabulary or among the added tokens.
  std::optional<std::int32_t> id(std::string_view token) const;
  /// Ids with `special: true`, ascending: what the reference script's truncation keeps.
  std::span<std::int32_t const> special_ids() const;
  /// Number of ids that encode() can return: one more than the largest.
  std::int32_t size() const;
  /// XXH3 (64 bit) of the file's bytes, written into shards and adapters.
  std::uint64_t fingerprint() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vlrerank
