// data/prompt.cpp -- the reranker's prompt. Text between two special tokens is tokenised in one
// go, so merges across the seams of template, instruction, query and document come out as in the
// whole rendered string.
#include "data/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace vlrerank::prompt {
namespace {

enum class Origin { fixed, query, document };

class Renderer {
 public:
  Renderer(Frame const& frame, Notes notes) : frame_(frame), notes_(notes) {}

  void words(std::string_view words, Origin origin) {
    if (notes_ == Notes::text_tokens) pieces_.push_back({std::string(words), origin});
    open_ += words;
  }
  void special(std::int32_t id) {
    close();
    result_.ids.push_back(id);
  }
  void side(Side const& side, std::size_t first_medium, Origin origin) {
    for (auto const& part : side) {
      if (auto const* const text_part = std::get_if<std::string>(&part)) {
        words(*text_part, origin);
      } else {
        medium(frame_.media[first_medium++]);
      }
    }
  }
  Rendered take() {
    close();
    return std::move(result_);
  }

 private:
  struct Piece {
    std::string words;
    Origin origin;
  };

  void pads(std::int32_t id, std::int32_t count) {
    special(frame_.ids.vision_start);
    result_.ids.insert(result_.ids.end(), static_cast<std::size_t>(count), id);
    result_.ids.push_back(frame_.ids.vision_end);
  }
  void medium(MediumGrid const& medium) {
    auto const& grid = medium.grid;
    if (!medium.video) {
      pads(frame_.ids.image_pad, grid.tokens());
      return;
    }
    VLR_REQUIRE(medium.seconds.size() == static_cast<std::size_t>(grid.t),
                text("a video of ", grid.t, " frame pairs has ", medium.seconds.size(), " times"),
                "this is a bug in the caller: give the time of each frame pair");
    for (auto const seconds : medium.seconds) {
      words(fmt::format("<{:.1f} seconds>", seconds), Origin::fixed);
      pads(frame_.ids.video_pad, grid.tokens() / grid.t);
    }
  }

  /// Tokenises the text since the last special token.
  void close() {
    auto const first = result_.ids.size();
    frame_.tokenizer.encode(open_, frame_.options.special_strings, result_.ids);
    if (notes_ == Notes::text_tokens) note(first);
    open_.clear();
    pieces_.clear();
  }
  /// Finds the tokens from `first` on that lie inside the query's or the document's text.
  void note(std::size_t first) {
    std::size_t token = first;
    std::size_t token_begin = 0;  // in normalised bytes of this stretch
    std::size_t piece_begin = 0;
    for (auto const& piece : pieces_) {
      auto const mode = frame_.options.special_strings;
      auto const bytes = frame_.tokenizer.decode(frame_.tokenizer.encode(piece.words, mode));
      auto const piece_end = piece_begin + bytes.size();
      auto* const notes = piece.origin == Origin::query      ? &result_.query
                          : piece.origin == Origin::document ? &result_.document
                                                             : nullptr;
      while (token < result_.ids.size()) {
        auto const token_end =
            token_begin + frame_.tokenizer.decode({&result_.ids[token], 1}).size();
        if (token_end > piece_end) break;
        if (notes != nullptr && token_begin >= piece_begin) {
          notes->at.push_back(token);
          notes->bytes_end.push_back(notes->bytes.size() + token_end - piece_begin);
        }
        token_begin = token_end;
        ++token;
      }
      if (notes != nullptr) notes->bytes += bytes;
      piece_begin = piece_end;
    }
  }

  Frame const& frame_;
  Notes notes_;
  Rendered result_;
  std::string open_;           ///< text since the last special token
  std::vector<Piece> pieces_;  ///< what it is made of
};

}  // namespace

std::size_t media_count(Side const& side) {
  std::size_t count = 0;
  for (auto const& part : side) count += std::holds_alternative<std::string>(part) ? 0 : 1;
  return count;
}

Rendered render(Frame const& frame, Pair const& pair, Notes notes) {
  Renderer renderer(frame, notes);
  auto const& ids = frame.ids;
  renderer.special(ids.im_start);
  renderer.words("system\n", Origin::fixed);
  renderer.words(frame.options.system, Origin::fixed);
  renderer.special(ids.im_end);
  renderer.words("\n", Origin::fixed);
  renderer.special(ids.im_start);
  renderer.words("user\n<Instruct>: ", Origin::fixed);
  renderer.words(pair.instruction, Origin::fixed);
  renderer.words("<Query>:", Origin::fixed);
  renderer.side(pair.query, 0, Origin::query);
  renderer.words("\n<Document>:", Origin::fixed);
  renderer.side(pair.document, pair.document_media, Origin::document);
  renderer.special(ids.im_end);
  renderer.words("\n", Origin::fixed);
  renderer.special(ids.im_start);
  renderer.words("assistant\n", Origin::fixed);
  return renderer.take();
}

Side shorten(Side const& side, std::size_t bytes, Frame const& frame) {
  Side shorter;
  for (auto const& part : side) {
    auto const* const words = std::get_if<std::string>(&part);
    if (words == nullptr) {
      shorter.push_back(part);
      continue;
    }
    auto const mode = frame.options.special_strings;
    auto kept = frame.tokenizer.decode(frame.tokenizer.encode(*words, mode));
    auto end = std::min(bytes, kept.size());
    bytes -= end;
    while (end > 0 && end < kept.size() && (static_cast<unsigned char>(kept[end]) & 0xc0) == 0x80)
      --end;  // never half a character
    kept.resize(end);
    if (!kept.empty()) shorter.emplace_back(std::move(kept));
  }
  return shorter;
}

}  // namespace vlrerank::prompt
