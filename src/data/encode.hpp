// data/encode.hpp -- a sample becomes token ids: prompt, truncation, shared prefix, positions.
// The prompt is the reranker's own (reference README): ids are those of the whole rendered string,
// merges across the seams included.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/sample.hpp"
#include "media/image.hpp"
#include "tokenizer/tokenizer.hpp"

namespace vlrerank {

enum class Truncation {
  document,  ///< product.md 4: the document's text tail, then the query's; never media or suffix
  script,    ///< the reference script's: special ids stay, other ids from the front, + 5 suffix ids
};

struct EncodeOptions {
  std::int32_t max_length = 4096;  ///< tokens of one pair
  Truncation truncation = Truncation::document;
  AddedTokens special_strings = AddedTokens::plain;
  std::string instruction =
      "Given a search query, retrieve relevant candidates that answer the query.";
  std::string system =
      "Judge whether the Document meets the requirements based on the Query and the Instruct "
      "provided. Note that the answer can only be \"yes\" or \"no\".";
};

/// Ids of the tokens that the prompt is made of; all looked up in the tokenizer, never assumed.
struct PromptIds {
  explicit PromptIds(Tokenizer const& tokenizer);
  std::int32_t im_start = 0;
  std::int32_t im_end = 0;
  std::int32_t image_pad = 0;
  std::int32_t video_pad = 0;
  std::int32_t vision_start = 0;
  std::int32_t vision_end = 0;
  std::int32_t yes = 0;
  std::int32_t no = 0;
};

/// A medium as the encoder needs it: how many tokens it takes.
/// A video is t > 1 frame pairs, each shown with its time in seconds.
struct MediumGrid {
  Grid grid;
  bool video = false;
  std::vector<double> seconds;  ///< of each frame pair, when video
};

struct EncodedPair {
  float label = 0;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> media;  ///< index into EncodedRow::media, in prompt order
  std::int32_t cut_tokens = 0;      ///< text tokens that truncation removed
};

/// One query with its documents.
struct EncodedRow {
  std::vector<EncodedPair> pairs;  ///< one a document, in the sample's order
  std::vector<MediumGrid> media;   ///< the row's media: the query's, then document by document
  std::int32_t prefix_end = 0;     ///< leading tokens (and media) equal in all pairs; 0 if one pair
  std::int64_t line = 0;
};

/// The media of a sample in the order of EncodedRow::media: query first, then each document's.
std::vector<Part const*> media_of(Sample const& sample);

/// @param media  grids of media_of(sample), in that order
/// Throws Error (exit 3) whose summary() is the reason: in document mode when what must not be cut
/// (media, instruction, template) exceeds max_length, and when parsed user text holds a pad token.
/// Script mode keeps every special id as the script does: its result can exceed max_length.
EncodedRow encode_row(Sample const& sample, std::vector<MediumGrid> media,
                      Tokenizer const& tokenizer, PromptIds const& prompt_ids,
                      EncodeOptions const& options);

/// 3-D rotary positions (reference README, "Positions"): text counts up on all axes, a picture of
/// h x w merged tokens takes t = s, y = s + row, x = s + column, the next token is at s + max(h,
/// w).
/// @return  [3][ids.size()]: temporal, height, width
std::array<std::vector<std::int32_t>, 3> rope_positions(std::vector<std::int32_t> const& ids,
                                                        std::vector<Grid> const& grids,
                                                        PromptIds const& prompt_ids);

}  // namespace vlrerank
