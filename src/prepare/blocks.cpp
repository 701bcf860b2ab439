// prepare/blocks.cpp -- rows to block shards, and the notes that let a killed run go on.
#include "prepare/blocks.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/files.hpp"
#include "shards/format.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kept_pixels = std::size_t{256} << 20;  // of a rank's media cache
constexpr char const* block_name = "block";

/// A block that is being filled.
class OpenBlock {
 public:
  OpenBlock(WorkFolder const& work, std::int64_t number, ShardRecipe const& recipe)
      : work_(work),
        number_(number),
        writer_(work.path, block_name, static_cast<int>(number), recipe) {}

  void add(ParsedRow const& parsed, StoredRow const& row, std::vector<MediaStamp> const& media) {
    writer_.append(row);
    keep(add_row(note_.report, parsed, row.row));
    media_.insert(media.begin(), media.end());
  }
  void add_bad(BadRow bad) { keep(add_bad_row(note_.report, std::move(bad))); }
  PrepareReport const& report() const { return note_.report; }

  void finish() {
    note_.bytes = writer_.bytes();
    note_.media.assign(media_.begin(), media_.end());
    writer_.finish(Durability::cached);
    write_file(work_.block_note(number_), to_json(note_), Durability::cached);
  }

 private:
  void keep(std::string line) {
    if (!line.empty()) note_.lines.push_back(std::move(line));
  }

  WorkFolder const& work_;
  std::int64_t number_;
  ShardWriter writer_;
  BlockNote note_;
  std::set<MediaStamp> media_;
};

/// JSON line -> row of a shard.
class RowEncoder {
 public:
  explicit RowEncoder(PrepareRequest const& request)
      : request_(request),
        prompt_(*request.tokenizer),
        media_(request.image, kept_pixels, request.video) {}

  void encode(OpenBlock& block, Source const& source, std::int64_t line, std::string_view bytes) {
    try {
      auto const parsed = parse_row(bytes, source.path, line, request_.rows);
      StoredRow stored;
      std::vector<MediaStamp> stamps;
      std::vector<MediumGrid> grids;
      for (auto const* part : media_of(parsed.sample)) {
        auto const medium = media_.load(*part);
        grids.push_back(medium->grid);
        stored.pixels.push_back(medium->pixels);
        stamps.insert(stamps.end(), medium->stamps.begin(), medium->stamps.end());
      }
      stored.row = encode_row(parsed.sample, std::move(grids), *request_.tokenizer, prompt_,
                              request_.encode);
      stored.row.line = line;
      stored.id = parsed.sample.id;
      stored.file = source.path;
      block.add(parsed, stored, stamps);
    } catch (Error const& error) {
      if (error.code() != Exit::input) throw;
      block.add_bad({source.path, line, error.summary()});
    }
  }

 private:
  PrepareRequest const& request_;
  PromptIds prompt_;
  MediaCache media_;
};

/// The first block that shall not be done, as some rank has said.
std::int64_t stop_before(WorkFolder const& work) {
  if (!fs::exists(work.stop())) return std::numeric_limits<std::int64_t>::max();
  return std::strtoll(read_file(work.stop(), 64).c_str(), nullptr, 10);
}

/// A block of an earlier run that can stand: whole, and its media unchanged.
std::optional<BlockNote> earlier_block(WorkFolder const& work, std::int64_t block) {
  auto note = read_note(work.block_note(block));
  if (!note || !is_fresh(note->media)) return std::nullopt;
  try {
    auto const shard = ShardSet::open_shard(work.block_shard(block));
    if (shard.rows() == note->report.rows) return note;
  } catch (Error const&) {
  }
  return std::nullopt;
}

}  // namespace

fs::path WorkFolder::block_shard(std::int64_t block) const {
  return path / shards::shard_file_name(block_name, static_cast<int>(block));
}

fs::path WorkFolder::block_note(std::int64_t block) const {
  return block_shard(block).replace_extension(".json");
}

std::string to_json(BlockNote const& note) {
  Json media = Json::array();
  for (auto const& stamp : note.media) media.push_back({stamp.path, stamp.bytes, stamp.modified});
  Json const json = {{"report", Json::parse(to_json(note.report))},
                     {"bytes", note.bytes},
                     {"lines", note.lines},
                     {"media", media}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<BlockNote> read_note(fs::path const& path) {
  try {
    auto const json = Json::parse(read_file(path));
    BlockNote note;
    note.report = report_from_json(json.at("report").dump());
    note.bytes = json.at("bytes").get<std::int64_t>();
    note.lines = json.at("lines").get<std::vector<std::string>>();
    for (auto const& stamp : json.at("media"))
      note.media.push_back({stamp.at(0).get<std::string>(), stamp.at(1).get<std::uint64_t>(),
                            stamp.at(2).get<std::int64_t>()});
    return note;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

bool is_fresh(std::vector<MediaStamp> const& media) {
  return std::all_of(media.begin(), media.end(),
                     [](MediaStamp const& stamp) { return stamp == stamp_of(stamp.path); });
}

std::int64_t block_rows(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 128, 16, 512);
}

PrepareReport encode_blocks(PrepareRequest const& request, ShardRecipe const& recipe,
                            std::vector<Source> const& sources,
                            std::vector<std::int64_t> const& totals, WorkFolder const& work,
                            int rank, int ranks, std::int64_t allowed) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    rows += sources[i].wanted < 0 ? totals[i] : std::min(totals[i], sources[i].wanted);
  auto const size = block_rows(rows);
  auto const blocks = (rows + size - 1) / size;
  auto const mine = (blocks - rank + ranks - 1) / ranks;

  RowEncoder encoder(request);
  PrepareReport seen;
  std::optional<OpenBlock> open;
  bool skip = true;
  std::int64_t done = 0;
  auto const close = [&](std::int64_t block, PrepareReport const& report) {
    merge(seen, report);
    if (seen.bad_rows > allowed) write_file(work.stop(), text(block), Durability::cached);
    if (request.progress) request.progress(++done, mine);
  };
  for_each_row(
      sources, totals, request.seed,
      [&](std::int64_t position, Source const& source, std::int64_t line, std::string_view bytes) {
        auto const block = position / size;
        if (block % ranks != rank) return;
        if (position % size == 0) {
          skip = block >= stop_before(work);
          if (skip) return;
          if (auto const note = earlier_block(work, block)) {
            close(block, note->report);
            skip = true;
            return;
          }
          open.emplace(work, block, recipe);
        }
        if (skip) return;
        encoder.encode(*open, source, line, bytes);
        if (position % size != size - 1 && position != rows - 1) return;
        open->finish();
        close(block, open->report());
        open.reset();
      });
  return seen;
}

}  // namespace vlrerank
