// shards/describe.cpp -- counts come from the index alone; no token and no pixel is read.
#include "shards/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/files.hpp"
#include "shards/shard.hpp"

namespace vlrerank {
namespace {

constexpr double mebibyte = 1024.0 * 1024.0;

struct Counts {
  std::int64_t pairs = 0, tokens = 0, shared_tokens = 0, patches = 0, positives = 0;
  std::int32_t longest = 0;
  std::size_t most_documents = 0;
};

Counts count(ShardSet const& set) {
  Counts counts;
  for (std::int64_t i = 0; i < set.rows(); ++i) {
    auto const row = set.index(i);
    counts.pairs += static_cast<std::int64_t>(row.labels.size());
    counts.most_documents = std::max(counts.most_documents, row.labels.size());
    counts.patches += row.patches;
    for (auto const tokens : row.pair_tokens) {
      counts.tokens += tokens;
      counts.longest = std::max(counts.longest, tokens);
    }
    counts.shared_tokens +=
        std::int64_t{row.prefix} * (static_cast<std::int64_t>(row.pair_tokens.size()) - 1);
    counts.positives += std::count_if(row.labels.begin(), row.labels.end(),
                                      [](float label) { return label > 0.5f; });
  }
  return counts;
}

}  // namespace

std::string describe_shards(std::filesystem::path const& path) {
  auto const set =
      std::filesystem::is_directory(path) ? ShardSet::open(path) : ShardSet::open_shard(path);
  auto const counts = count(set);
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  for (auto const& shard : set.shards()) {
    images += shard.images;
    bytes += shard.bytes;
  }
  auto const rows = std::max<std::int64_t>(set.rows(), 1);
  auto const pairs = std::max<std::int64_t>(counts.pairs, 1);
  std::string out = fmt::format(
      "shard set {}: {} rows, {} pairs ({} with a label above 0.5), {:.1f} MiB\n", set.name(),
      set.rows(), counts.pairs, counts.positives, static_cast<double>(bytes) / mebibyte);
  out += fmt::format("documents a row: mean {:.2f}, most {}\n",
                     static_cast<double>(counts.pairs) / static_cast<double>(rows),
                     counts.most_documents);
  out += fmt::format("tokens: {}, a pair: mean {:.1f}, longest {}; with shared prefixes {}\n",
                     counts.tokens, static_cast<double>(counts.tokens) / static_cast<double>(pairs),
                     counts.longest, counts.tokens - counts.shared_tokens);
  out += fmt::format("pictures and videos: {} distinct, {} patches over all rows\n", images,
                     counts.patches);

  auto const recipe = nlohmann::ordered_json::parse(to_json(set.recipe()));
  out += fmt::format("tokenizer: {}\n", recipe.at("tokenizer").get<std::string>());
  for (auto const* part : {"encode", "image", "video"})
    out += fmt::format("{}: {}\n", part, recipe.at(part).dump());
  out += fmt::format("sources: {}\n", recipe.at("sources").dump());
  for (auto const& shard : set.shards())
    out += fmt::format("  {}  {} rows  {} pairs  {} images  {:.1f} MiB  index {}\n", shard.file,
                       shard.rows, shard.pairs, shard.images,
                       static_cast<double>(shard.bytes) / mebibyte, hex(shard.index));
  return out;
}

}  // namespace vlrerank
