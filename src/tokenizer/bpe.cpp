// tokenizer/bpe.cpp -- tables and merging. Ties cannot occur: a pair has one rank, and of equal
// pairs the leftmost is merged first, as in the tokenizers package.
#include "tokenizer/bpe.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <queue>

#include "core/error.hpp"
#include "tokenizer/unicode.hpp"

namespace vlrerank {
namespace {

constexpr auto kRemedy = "use the tokenizer.json that came with the model";
constexpr std::size_t kShortPiece = 48;  // bytes; longer ones are merged with a heap

/// The byte for which a printable character stands in tokenizer.json, -1 for any other character:
/// printable bytes stand for themselves, the rest for U+0100 and up, in order.
std::array<std::int16_t, 0x144> byte_of_character() {
  std::array<std::int16_t, 0x144> table;
  table.fill(-1);
  std::int16_t moved = 0x100;
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    bool const printable =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    table[static_cast<std::size_t>(printable ? byte : moved++)] = byte;
  }
  return table;
}

/// The bytes that a token stands for. A token with characters outside the byte alphabet keeps its
/// own UTF-8, which no merge will ever produce.
std::string bytes_of_token(std::string_view written) {
  static auto const table = byte_of_character();
  std::string bytes;
  for (std::size_t at = 0; at < written.size();) {
    auto const c = decode_utf8(written.data() + at);
    if (c.value >= table.size() || table[c.value] < 0) return std::string(written);
    bytes += static_cast<char>(table[c.value]);
    at += c.bytes;
  }
  return bytes;
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t pair_hash(std::uint64_t key) {
  key *= 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(key ^ key >> 29);
}

std::size_t token_hash(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

constexpr std::uint64_t kFreePair = ~std::uint64_t{0};

}  // namespace

Bpe::Bpe(BpeSource const& source) {
  for (auto const& token : source.vocabulary) add_token(token.text, token.id);
  index_tokens();
  for (int byte = 0; byte < 256; ++byte) {
    char const one = static_cast<char>(byte);
    byte_ids_[static_cast<std::size_t>(byte)] = find({&one, 1});
    VLR_INPUT(byte_ids_[static_cast<std::size_t>(byte)] >= 0,
              text("the vocabulary has no token for byte ", byte), kRemedy);
  }
  merge_slots_.assign(std::bit_ceil(source.merges.size()), {kFreePair, {kNoRank, -1}});
  byte_merges_.assign(256 * 256, {kNoRank, -1});
  std::string joined;
  for (std::size_t i = 0; i + 1 < source.merges.size(); i += 2) {
    auto const left_bytes = bytes_of_token(source.merges[i]);
    auto const right_bytes = bytes_of_token(source.merges[i + 1]);
    joined.assign(left_bytes).append(right_bytes);
    auto const left = find(left_bytes);
    auto const right = find(right_bytes);
    auto const whole = find(joined);
    VLR_INPUT(left >= 0 && right >= 0 && whole >= 0,
              text("merge ", i / 2, " (\"", source.merges[i], "\" + \"", source.merges[i + 1],
                   "\") names a token that is not in the vocabulary"),
              kRemedy);
    Merge const merge{static_cast<std::uint32_t>(i / 2), whole};
    add_merge(left, right, merge);
    if (left_bytes.size() == 1 && right_bytes.size() == 1) {
      byte_merges_[static_cast<unsigned char>(left_bytes[0]) * 256U +
                   static_cast<unsigned char>(right_bytes[0])] = merge;
    }
  }
  whole_ = std::make_unique<std::atomic<Whole>[]>(spans_.size());
}

void Bpe::add_token(std::string const& written, std::int32_t id) {
  VLR_INPUT(id >= 0 && id < (1 << 24), text("token \"", written, "\" has the id ", id), kRemedy);
  auto const bytes = bytes_of_token(written);
  auto const index = static_cast<std::size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  spans_[index] = {static_cast<std::uint32_t>(arena_.size()),
                   static_cast<std::uint32_t>(bytes.size())};
  arena_ += bytes;
}

void Bpe::index_tokens() {
  token_slots_.assign(std::bit_ceil(spans_.size() * 2 + 2), -1);
  auto const mask = token_slots_.size() - 1;
  for (std::int32_t id = 0; id < size(); ++id) {
    auto const name = bytes(id);
    if (name.empty()) continue;
    auto slot = token_hash(name) & mask;
    while (token_slots_[slot] >= 0) slot = (slot + 1) & mask;
    token_slots_[slot] = id;
  }
}

void Bpe::add_merge(std::int32_t left, std::int32_t right, Merge merge) {
  auto const key = pair_key(left, right);
  auto const mask = merge_slots_.size() - 1;
  auto slot = pair_hash(key) & mask;
  while (merge_slots_[slot].pair != kFreePair && merge_slots_[slot].pair != key)
    slot = (slot + 1) & mask;
  merge_slots_[slot] = {key, merge};
}

Bpe::Merge Bpe::merge_of(std::int32_t left, std::int32_t right) const {
  auto const key = pair_key(left, right);
  auto const mask = merge_slots_.size() - 1;
  for (auto slot = pair_hash(key) & mask;; slot = (slot + 1) & mask) {
    auto const& found = merge_slots_[slot];
    if (found.pair == key || found.pair == kFreePair) return found.merge;
  }
}

std::string_view Bpe::bytes(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  auto const span = spans_[static_cast<std::size_t>(id)];
  return std::string_view(arena_).substr(span.begin, span.bytes);
}

std::int32_t Bpe::find(std::string_view name) const {
  auto const mask = token_slots_.size() - 1;
  for (auto slot = token_hash(name) & mask;; slot = (slot + 1) & mask) {
    auto const id = token_slots_[slot];
    if (id < 0 || bytes(id) == name) return id;
  }
}

std::optional<std::int32_t> Bpe::find_written(std::string_view written) const {
  if (valid_utf8_prefix(written) != written.size()) return std::nullopt;
  auto const id = find(bytes_of_token(written));
  return id < 0 ? std::nullopt : std::optional(id);
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (piece.size() == 1) {
    out.push_back(byte_ids_[static_cast<unsigned char>(piece[0])]);
    return;
  }
  auto const id = find(piece);
  if (id >= 0) {
    auto& mark = whole_[static_cast<std::size_t>(id)];
    auto const known = mark.load(std::memory_order_relaxed);
    if (known == Whole::yes) {
      out.push_back(id);
      return;
    }
    auto const before = out.size();
    merge_piece(piece, out);
    bool const alone = out.size() == before + 1 && out.back() == id;
    if (known == Whole::unknown)
      mark.store(alone ? Whole::yes : Whole::no, std::memory_order_relaxed);
    return;
  }
  merge_piece(piece, out);
}

void Bpe::merge_piece(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (piece.size() <= kShortPiece) {
    merge_short(piece, out);
  } else {
    merge_long(piece, out);
  }
}

void Bpe::merge_short(std::string_view piece, std::vector<std::int32_t>& out) const {
  std::array<std::int32_t, kShortPiece> ids;
  std::array<Merge, kShortPiece> next;  // next[i] merges symbols i and i + 1
  auto count = piece.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto const byte = static_cast<unsigned char>(piece[i]);
    ids[i] = byte_ids_[byte];
    next[i] = i + 1 < count ? byte_merges_[byte * 256U + static_cast<unsigned char>(piece[i + 1])]
                            : Merge{kNoRank, -1};
  }
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (next[i].rank < next[best].rank) best = i;
    }
    if (next[best].rank == kNoRank) break;
    ids[best] = next[best].id;
    std::move(ids.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              ids.begin() + static_cast<std::ptrdiff_t>(count),
              ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::move(next.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              next.begin() + static_cast<std::ptrdiff_t>(count),
              next.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --count;
    next[best] = best + 1 < count ? merge_of(ids[best], ids[best + 1]) : Merge{kNoRank, -1};
    if (best > 0) next[best - 1] = merge_of(ids[best - 1], ids[best]);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
}

void Bpe::merge_long(std::string_view piece, std::vector<std::int32_t>& out) const {
  struct Symbol {
    std::int32_t id;  // -1: merged into its left neighbour
    std::int32_t left;
    std::int32_t right;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t at;
    std::int32_t left_id;
    std::int32_t right_id;
    std::int32_t id;
    bool operator<(Candidate const& other) const {  // the heap's top: lowest rank, then leftmost
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  auto const count = static_cast<std::int32_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  std::vector<Candidate> heap;
  auto const symbol = [&](std::int32_t at) -> Symbol& {
    return symbols[static_cast<std::size_t>(at)];
  };
  auto const candidate = [&](std::int32_t at, std::vector<Candidate>& into) {
    if (at < 0 || symbol(at).right < 0) return false;
    auto const left_id = symbol(at).id;
    auto const right_id = symbol(symbol(at).right).id;
    auto const merge = merge_of(left_id, right_id);
    if (merge.rank == kNoRank) return false;
    into.push_back({merge.rank, at, left_id, right_id, merge.id});
    return true;
  };
  for (std::int32_t i = 0; i < count; ++i) {
    auto const byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
    symbol(i) = {byte_ids_[byte], i - 1, i + 1 < count ? i + 1 : -1};
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) candidate(i, heap);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    auto const top = heap.back();
    heap.pop_back();
    auto& left = symbol(top.at);
    if (left.id != top.left_id || left.right < 0 || symbol(left.right).id != top.right_id) continue;
    auto& right = symbol(left.right);
    left.id = top.id;
    right.id = -1;
    left.right = right.right;
    if (left.right >= 0) symbol(left.right).left = top.at;
    if (candidate(top.at, heap)) std::push_heap(heap.begin(), heap.end());
    if (candidate(left.left, heap)) std::push_heap(heap.begin(), heap.end());
  }
  for (std::int32_t at = 0; at >= 0; at = symbol(at).right) out.push_back(symbol(at).id);
}

}  // namespace vlrerank
