// tokenizer/tokenizer.cpp -- the steps in order: added tokens, NFC, split, merge.
#include "tokenizer/tokenizer.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/split.hpp"
#include "tokenizer/tokenizer_file.hpp"
#include "tokenizer/unicode.hpp"

namespace vlrerank {

struct Tokenizer::State {
  explicit State(TokenizerFile file);

  /// The longest added token that begins at the start of `rest`, or none.
  AddedToken const* added_at(std::string_view rest) const;
  /// Where the next added token begins, and which it is; text.size() and null if there is none.
  std::pair<std::size_t, AddedToken const*> next_added(std::string_view text) const;
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;

  Bpe bpe;
  std::vector<AddedToken> added;  ///< longest first
  std::array<std::vector<AddedToken const*>, 256> by_first_byte;
  std::vector<std::string_view> added_by_id;  ///< from bpe.size() or below, by id
  std::vector<std::int32_t> special;
  std::unique_ptr<SplitPattern> pattern;  ///< null: Qwen's own, by hand
  std::int32_t size = 0;
  std::uint64_t fingerprint = 0;
};

Tokenizer::State::State(TokenizerFile file)
    : bpe(file.bpe), added(std::move(file.added)), size(bpe.size()), fingerprint(file.fingerprint) {
  std::stable_sort(added.begin(), added.end(), [](AddedToken const& a, AddedToken const& b) {
    return a.content.size() > b.content.size();
  });
  for (auto const& token : added) {
    size = std::max(size, token.id + 1);
    by_first_byte[static_cast<unsigned char>(token.content[0])].push_back(&token);
    if (token.special) special.push_back(token.id);
  }
  std::sort(special.begin(), special.end());
  added_by_id.resize(static_cast<std::size_t>(size));
  for (auto const& token : added) added_by_id[static_cast<std::size_t>(token.id)] = token.content;
  if (file.pattern != kQwenPattern) pattern = std::make_unique<SplitPattern>(file.pattern);
}

AddedToken const* Tokenizer::State::added_at(std::string_view rest) const {
  for (auto const* token : by_first_byte[static_cast<unsigned char>(rest[0])]) {
    if (rest.starts_with(token->content)) return token;
  }
  return nullptr;
}

std::pair<std::size_t, AddedToken const*> Tokenizer::State::next_added(
    std::string_view text_in) const {
  for (std::size_t at = 0; at < text_in.size(); ++at) {
    if (by_first_byte[static_cast<unsigned char>(text_in[at])].empty()) continue;
    if (auto const* token = added_at(text_in.substr(at))) return {at, token};
  }
  return {text_in.size(), nullptr};
}

void Tokenizer::State::encode_plain(std::string_view text_in,
                                    std::vector<std::int32_t>& out) const {
  if (text_in.empty()) return;
  std::string storage;
  auto const composed = nfc(text_in, storage);
  if (!pattern) {
    split_qwen(composed, code_classes(), [&](std::string_view piece) { bpe.encode(piece, out); });
    return;
  }
  std::vector<std::string_view> pieces;
  pattern->split(composed, pieces);
  for (auto const piece : pieces) bpe.encode(piece, out);
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(std::filesystem::path const& path) {
  auto const file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  try {
    return Tokenizer(std::make_unique<State>(read_tokenizer_file(file)));
  } catch (Error const& error) {
    auto const name = file.string();
    if (error.summary().starts_with(name)) throw;
    throw Error(error.code(), text(name, ": ", error.summary()),
                "use the tokenizer.json that came with the model", VLR_WHERE);
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text_in, AddedTokens added) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text_in.size() / 3 + 4);
  encode(text_in, added, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text_in, AddedTokens added,
                       std::vector<std::int32_t>& out) const {
  std::string storage;
  auto rest = repair_utf8(text_in, storage);
  if (added == AddedTokens::plain) {
    state_->encode_plain(rest, out);
    return;
  }
  while (!rest.empty()) {
    auto const [at, token] = state_->next_added(rest);
    state_->encode_plain(rest.substr(0, at), out);
    if (token == nullptr) break;
    out.push_back(token->id);
    rest.remove_prefix(at + token->content.size());
  }
}

std::string Tokenizer::decode(std::span<std::int32_t const> ids) const {
  std::string out;
  for (auto const id : ids) {
    auto const known = id >= 0 && id < state_->size;
    auto const added = known ? state_->added_by_id[static_cast<std::size_t>(id)] : "";
    auto const bytes = added.empty() ? state_->bpe.bytes(id) : added;
    VLR_INPUT(!bytes.empty(), text("id ", id, " is outside the vocabulary of ", size(), " tokens"),
              "use the tokenizer.json that belongs to these ids");
    out += bytes;
  }
  return out;
}

std::optional<std::int32_t> Tokenizer::id(std::string_view token) const {
  if (token.empty()) return std::nullopt;
  auto const* const added = state_->added_at(token);
  if (added != nullptr && added->content == token) return added->id;
  return state_->bpe.find_written(token);
}

std::span<std::int32_t const> Tokenizer::special_ids() const {
  return state_->special;
}
std::int32_t Tokenizer::size() const {
  return state_->size;
}
std::uint64_t Tokenizer::fingerprint() const {
  return state_->fingerprint;
}

}  // namespace vlrerank
