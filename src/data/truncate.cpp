// data/truncate.cpp -- what is cut when a pair is too long, in the program's own way and in the
// reference script's.
#include <algorithm>

#include "core/error.hpp"
#include "data/prompt.hpp"

namespace vlrerank::prompt {
namespace {

constexpr std::size_t kSuffixTokens = 5;     // <|im_end|> \n <|im_start|> assistant \n
constexpr std::size_t kDocumentTokens = 16;  // what a document keeps before the query is cut

/// Tokens of `tokens` that may stay when about `keep` should: fewer if the last one would end
/// inside a character.
std::size_t whole_characters(TextTokens const& tokens, std::size_t keep) {
  auto const inside = [&](std::size_t count) {
    auto const end = tokens.bytes_end[count - 1];
    return end < tokens.bytes.size() &&
           (static_cast<unsigned char>(tokens.bytes[end]) & 0xc0) == 0x80;
  };
  while (keep > 0 && inside(keep)) --keep;
  return keep;
}

std::size_t bytes_of_first(TextTokens const& tokens, std::size_t keep) {
  return keep == 0 ? 0 : tokens.bytes_end[keep - 1];
}

/// Renders shorter and shorter versions of a side until the pair fits; empty when none does.
/// @param make  renders the pair with that many of the side's tokens kept
template <class Make>
std::vector<std::int32_t> shorten_until(std::size_t limit, std::size_t length, std::size_t tokens,
                                        Make&& make) {
  while (tokens > 0) {
    tokens -= std::min(tokens, length - limit);
    auto ids = make(tokens);
    if (ids.size() <= limit) return ids;
    length = ids.size();
  }
  return {};
}

std::vector<std::int32_t> fit_document(Frame const& frame, Pair const& pair) {
  auto const limit = static_cast<std::size_t>(frame.options.max_length);
  auto full = render(frame, pair, Notes::text_tokens);
  auto const excess = full.ids.size() - limit;
  auto const tokens = full.document.at.size();
  auto const spare = tokens > kDocumentTokens ? tokens - kDocumentTokens : 0;

  if (excess <= spare) {  // the usual case: the document's tail alone
    auto const keep = whole_characters(full.document, tokens - excess);
    for (auto i = tokens; i > keep; --i) {
      full.ids.erase(full.ids.begin() + static_cast<std::ptrdiff_t>(full.document.at[i - 1]));
    }
    return std::move(full.ids);
  }
  // The query's tail too. Its end merges with the template behind it, so the text is cut and the
  // whole tokenised again.
  auto const kept_document = bytes_of_first(full.document, std::min(tokens, kDocumentTokens));
  auto const document = shorten(pair.document, kept_document, frame);
  auto ids =
      shorten_until(limit, full.ids.size() - spare, full.query.at.size(), [&](std::size_t keep) {
        auto const query = shorten(pair.query, bytes_of_first(full.query, keep), frame);
        return render(frame, {pair.instruction, query, document, pair.document_media}, Notes::none)
            .ids;
      });
  if (!ids.empty()) return ids;
  auto const query = shorten(pair.query, 0, frame);
  Pair const bare{pair.instruction, query, document, pair.document_media};
  auto const length = render(frame, bare, Notes::none).ids.size();
  if (length <= limit) return render(frame, bare, Notes::none).ids;
  ids = shorten_until(limit, length, std::min(tokens, kDocumentTokens), [&](std::size_t keep) {
    auto const rest = shorten(pair.document, bytes_of_first(full.document, keep), frame);
    return render(frame, {pair.instruction, query, rest, pair.document_media}, Notes::none).ids;
  });
  if (!ids.empty()) return ids;
  auto const least = full.ids.size() - full.query.at.size() - tokens;
  throw Error(Exit::input,
              text("media, instruction and template take ", least,
                   " tokens without any text, more than --max-length ", limit),
              "raise --max-length, or lower --image-max-tokens", VLR_WHERE);
}

/// The script's rule: the last five ids stay, of the others every special one and, from the front,
/// as many more as max_length leaves room for.
std::vector<std::int32_t> fit_script(Frame const& frame, std::vector<std::int32_t> const& ids) {
  auto const limit = static_cast<std::size_t>(frame.options.max_length);
  auto const special = frame.tokenizer.special_ids();
  auto const is_special = [special](std::int32_t id) {
    return std::binary_search(special.begin(), special.end(), id);
  };
  auto const head_end = ids.end() - static_cast<std::ptrdiff_t>(kSuffixTokens);
  auto const specials = static_cast<std::size_t>(std::count_if(ids.begin(), head_end, is_special));
  auto room = limit > specials ? limit - specials : 0;
  std::vector<std::int32_t> kept;
  kept.reserve(limit + kSuffixTokens);
  for (auto at = ids.begin(); at != head_end; ++at) {
    if (is_special(*at)) {
      kept.push_back(*at);
    } else if (room > 0) {
      kept.push_back(*at);
      --room;
    }
  }
  kept.insert(kept.end(), head_end, ids.end());
  return kept;
}

}  // namespace

std::vector<std::int32_t> fit(Frame const& frame, Pair const& pair, std::int32_t& cut_tokens) {
  auto ids = render(frame, pair, Notes::none).ids;
  auto const length = ids.size();
  auto const limit = static_cast<std::size_t>(frame.options.max_length);
  cut_tokens = 0;
  if (frame.options.truncation == Truncation::script) {
    if (length <= limit + kSuffixTokens) return ids;
    ids = fit_script(frame, ids);
  } else {
    if (length <= limit) return ids;
    ids = fit_document(frame, pair);
  }
  cut_tokens = static_cast<std::int32_t>(length - ids.size());
  return ids;
}

}  // namespace vlrerank::prompt
