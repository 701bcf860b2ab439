// data/encode.cpp -- a row's pairs: ids, the prefix that all of them share, and their media.
#include "data/encode.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "data/prompt.hpp"

namespace vlrerank {
namespace {

std::int32_t look_up(Tokenizer const& tokenizer, std::string_view token) {
  auto const id = tokenizer.id(token);
  VLR_INPUT(id.has_value(), text("the tokenizer has no token ", token),
            "use the tokenizer.json that came with the Qwen3-VL model");
  return *id;
}

/// The ids of a medium in a pair: from its first pad to behind its last.
struct PadRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<PadRange> pad_ranges(EncodedPair const& pair, std::vector<MediumGrid> const& media,
                                 PromptIds const& ids) {
  std::vector<PadRange> ranges;
  std::size_t at = 0;
  for (auto const index : pair.media) {
    auto left = media[static_cast<std::size_t>(index)].grid.tokens();
    PadRange range;
    while (left > 0 && at < pair.ids.size()) {
      if (pair.ids[at] == ids.image_pad || pair.ids[at] == ids.video_pad) {
        if (range.end == 0) range.begin = at;
        range.end = at + 1;
        --left;
      }
      ++at;
    }
    ranges.push_back(range);
  }
  return ranges;
}

/// Leading ids that all pairs share, media compared by what they are, not by their pads; the prefix
/// ends before a medium rather than inside it, and leaves each pair at least its last token.
std::int32_t shared_prefix(EncodedRow const& row, PromptIds const& ids) {
  if (row.pairs.size() < 2) return 0;
  auto const& first = row.pairs[0];
  auto const ranges = pad_ranges(first, row.media, ids);
  auto length = first.ids.size() - 1;
  for (std::size_t i = 1; i < row.pairs.size(); ++i) {
    auto const& other = row.pairs[i];
    length = std::min(length, other.ids.size() - 1);
    auto const differ =
        std::mismatch(first.ids.begin(), first.ids.begin() + static_cast<std::ptrdiff_t>(length),
                      other.ids.begin());
    length = static_cast<std::size_t>(differ.first - first.ids.begin());
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      bool const same = k < other.media.size() && first.media[k] == other.media[k];
      if (!same || ranges[k].end > length) length = std::min(length, ranges[k].begin);
    }
  }
  return static_cast<std::int32_t>(length);
}

/// User text that was parsed may hold pad tokens of its own, for which there is no medium.
void check_pads(EncodedPair const& pair, std::vector<MediumGrid> const& media,
                PromptIds const& ids) {
  std::ptrdiff_t expected = 0;
  for (auto const index : pair.media)
    expected += media[static_cast<std::size_t>(index)].grid.tokens();
  auto const found = std::count(pair.ids.begin(), pair.ids.end(), ids.image_pad) +
                     std::count(pair.ids.begin(), pair.ids.end(), ids.video_pad);
  VLR_INPUT(found == expected,
            text("the text holds image or video pad tokens: ", found, " pads for ", expected,
                 " media tokens"),
            "leave --parse-special-tokens out, or remove them from the text");
}

}  // namespace

PromptIds::PromptIds(Tokenizer const& tokenizer)
    : im_start(look_up(tokenizer, "<|im_start|>")),
      im_end(look_up(tokenizer, "<|im_end|>")),
      image_pad(look_up(tokenizer, "<|image_pad|>")),
      video_pad(look_up(tokenizer, "<|video_pad|>")),
      vision_start(look_up(tokenizer, "<|vision_start|>")),
      vision_end(look_up(tokenizer, "<|vision_end|>")),
      yes(look_up(tokenizer, "yes")),
      no(look_up(tokenizer, "no")) {}

std::vector<Part const*> media_of(Sample const& sample) {
  std::vector<Part const*> media;
  auto const add = [&media](Side const& side) {
    for (auto const& part : side) {
      if (!std::holds_alternative<std::string>(part)) media.push_back(&part);
    }
  };
  add(sample.query);
  for (auto const& document : sample.documents) add(document.content);
  return media;
}

EncodedRow encode_row(Sample const& sample, std::vector<MediumGrid> media,
                      Tokenizer const& tokenizer, PromptIds const& prompt_ids,
                      EncodeOptions const& options) {
  auto const expected = media_of(sample).size();
  VLR_REQUIRE(media.size() == expected,
              text("a row with ", expected, " media came with ", media.size(), " grids"),
              "this is a bug in the caller: give the grid of each of media_of(sample)");
  EncodedRow row;
  row.line = sample.line;
  row.media = std::move(media);
  prompt::Frame const frame{tokenizer, prompt_ids, options, row.media};
  auto const query_media = prompt::media_count(sample.query);
  auto next_medium = query_media;
  for (auto const& document : sample.documents) {
    auto const& instruction = !document.instruction.empty() ? document.instruction
                              : !sample.instruction.empty() ? sample.instruction
                                                            : options.instruction;
    EncodedPair pair;
    pair.label = document.label;
    for (std::size_t i = 0; i < query_media; ++i)
      pair.media.push_back(static_cast<std::int32_t>(i));
    auto const own_media = prompt::media_count(document.content);
    for (std::size_t i = 0; i < own_media; ++i)
      pair.media.push_back(static_cast<std::int32_t>(next_medium + i));
    pair.ids = prompt::fit(frame, {instruction, sample.query, document.content, next_medium},
                           pair.cut_tokens);
    if (options.special_strings == AddedTokens::parse) check_pads(pair, row.media, prompt_ids);
    next_medium += own_media;
    row.pairs.push_back(std::move(pair));
  }
  row.prefix_end = shared_prefix(row, prompt_ids);
  return row;
}

}  // namespace vlrerank
