// tokenizer/tokenizer_file.hpp -- tokenizer.json as plain data, checked to be of the kind we know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tokenizer/bpe.hpp"

namespace vlrerank {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;
};

struct TokenizerFile {
  BpeSource bpe;
  std::vector<AddedToken> added;
  std::string pattern;  ///< the Split pre-tokeniser's regular expression
  std::uint64_t fingerprint = 0;
};

/// Throws Error (exit 3) naming the file when it is missing, malformed or of another kind.
TokenizerFile read_tokenizer_file(std::filesystem::path const& path);

}  // namespace vlrerank
