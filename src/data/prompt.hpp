// data/prompt.hpp -- one query and one document rendered into token ids, with a note of which ids
// came from which text, so that truncation knows what it may cut. Internal to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/encode.hpp"

namespace vlrerank::prompt {

/// What all pairs of a row have in common.
struct Frame {
  Tokenizer const& tokenizer;
  PromptIds const& ids;
  EncodeOptions const& options;
  std::vector<MediumGrid> const& media;  ///< EncodedRow::media
};

/// One pair before it is rendered. Sides may be shortened copies of the sample's.
struct Pair {
  std::string const& instruction;
  Side const& query;
  Side const& document;
  std::size_t document_media;  ///< index of the document's first medium in the row's media
};

/// A side's text tokens in the rendered prompt: those that lie inside its own text entirely.
struct TextTokens {
  std::vector<std::size_t> at;         ///< index into the ids
  std::vector<std::size_t> bytes_end;  ///< bytes of the side's text, normalised, up to its end
  std::string bytes;                   ///< the side's text, normalised, its parts joined
};

struct Rendered {
  std::vector<std::int32_t> ids;
  TextTokens query;     ///< filled when asked for
  TextTokens document;  ///< filled when asked for
};

enum class Notes { none, text_tokens };

Rendered render(Frame const& frame, Pair const& pair, Notes notes);

/// The side with its text shortened to the first `bytes` normalised bytes; media stay.
Side shorten(Side const& side, std::size_t bytes, Frame const& frame);

/// Number of media among the parts of a side.
std::size_t media_count(Side const& side);

/// Cuts a pair's text so that it fits (EncodeOptions::truncation): see encode.hpp.
/// @param cut_tokens  receives how many text tokens went
std::vector<std::int32_t> fit(Frame const& frame, Pair const& pair, std::int32_t& cut_tokens);

}  // namespace vlrerank::prompt
