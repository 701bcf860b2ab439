// prepare/prepare.cpp -- the order of the work over all ranks: find, encode blocks, join them into
// shards, publish. Ranks meet through the control communicator; data moves through the file system.
#include "prepare/prepare.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "io/files.hpp"
#include "io/lock.hpp"
#include "prepare/blocks.hpp"
#include "prepare/publish.hpp"
#include "shards/format.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view fix_mark = "\n  fix:   ", where_mark = "\n  where: ";

/// An Error as text that unpack_and_throw() understands.
std::string pack(Error const& error) {
  return Json{static_cast<int>(error.code()), error.summary(), error.what()}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

[[noreturn]] void unpack_and_throw(std::string const& packed) {
  auto const json = Json::parse(packed);
  auto const full = json[2].get<std::string>();
  auto const fix = full.rfind(fix_mark) + fix_mark.size();
  auto const where = full.rfind(where_mark);
  throw Error(static_cast<Exit>(json[0].get<int>()), json[1].get<std::string>(),
              full.substr(fix, where - fix), full.substr(where + where_mark.size()));
}

/// Runs `work` here and waits for the others; then all throw the first failing rank's Error.
template <class Work>
void on_all_ranks(Communicator& control, Work work) {
  std::string failure;
  try {
    work();
  } catch (Error const& error) {
    failure = pack(error);
  } catch (fs::filesystem_error const& error) {
    failure = pack(Error(Exit::io, error.what(), "check the output folder", VLR_WHERE));
  } catch (std::exception const& error) {
    failure = pack(Error(Exit::internal, error.what(), "report it with the input", VLR_WHERE));
  }
  for (auto const& other : all_gather_text(control, failure))
    if (!other.empty()) unpack_and_throw(other);
}

/// What the root found out about the inputs, for all ranks.
struct Plan {
  std::vector<Source> sources;
  std::vector<std::int64_t> totals;  ///< rows of each source
  ShardRecipe recipe;

  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < sources.size(); ++i)
      sum += sources[i].wanted < 0 ? totals[i] : std::min(totals[i], sources[i].wanted);
    return sum;
  }
};

/// Root reads the files; the others learn what it found.
Plan make_plan(PrepareRequest const& request, Communicator& control) {
  Plan plan;
  on_all_ranks(control, [&] {
    VLR_USAGE(!request.inputs.empty(), "no data set was named", "give --dataset FILE.jsonl");
    for (auto const& input : request.inputs) plan.sources.push_back(parse_source(input));
    if (!control.is_root()) return;
    for (auto& source : plan.sources) {
      auto const hash = hash_file(source.path);
      source.bytes = hash.bytes;
      source.xxh3 = hash.xxh3;
    }
  });
  Json json = Json::array();
  for (auto const& source : plan.sources) json.push_back({source.bytes, source.xxh3});
  auto const shared = Json::parse(broadcast_text(control, json.dump()));
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    plan.sources[i].bytes = shared[i][0].get<std::uint64_t>();
    plan.sources[i].xxh3 = shared[i][1].get<std::uint64_t>();
  }
  plan.recipe = {request.tokenizer->fingerprint(), request.encode, request.image,
                 sources_json(plan.sources, request.rows, request.seed), request.video};
  return plan;
}

void count_all_rows(Plan& plan, Communicator& control) {
  on_all_ranks(control, [&] {
    if (!control.is_root()) return;
    for (auto const& source : plan.sources) plan.totals.push_back(count_rows(source.path));
  });
  auto const shared = broadcast_text(control, Json(plan.totals).dump());
  plan.totals = Json::parse(shared).get<std::vector<std::int64_t>>();
  VLR_INPUT(plan.rows() > 0, text(plan.sources.front().path, " has no rows"),
            "give a JSONL file with at least one row");
}

/// Says on every rank what root sees.
bool ask_root(Communicator& control, bool mine) {
  return broadcast_text(control, control.is_root() && mine ? "yes" : "no") == "yes";
}

/// A work folder of the same work is kept; of any other, or of a failed run, it is made anew.
bool open_work(WorkFolder const& work, std::string const& identity) {
  bool const same = fs::exists(work.identity()) && !fs::exists(work.stop()) &&
                    read_file(work.identity()) == identity;
  if (same) return true;
  fs::remove_all(work.path);
  make_directories(work.path);
  write_file(work.identity(), identity);
  return false;
}

void require_few_bad_rows(PrepareReport const& bad, std::int64_t rows, bool strict,
                          std::int64_t allowed) {
  if (bad.bad_rows <= allowed) return;
  std::string list;
  for (auto const& row : bad.first_bad) list += text("\n    ", row.text());
  VLR_INPUT(!strict, bad.first_bad.front().text(),
            "mend the row, or leave --strict out to skip bad rows");
  VLR_INPUT(false,
            text(bad.bad_rows, " bad rows or more among ", rows, ", at most ", allowed,
                 " are skipped:", list),
            "mend them (`vlrerank check` lists all), or skip more with --max-bad-rows N");
}

std::int64_t allowed_bad_rows(PrepareRequest const& request, std::int64_t rows) {
  if (request.strict) return 0;
  return request.max_bad_rows >= 0 ? request.max_bad_rows : std::max<std::int64_t>(10, rows / 1000);
}

/// Every rank's part of the bad rows, in the order of the input.
PrepareReport gather_bad(Communicator& control, PrepareReport const& mine, Plan const& plan) {
  PrepareReport all;
  std::vector<BadRow> rows;
  for (auto const& text : all_gather_text(control, to_json(mine))) {
    auto const report = report_from_json(text);
    all.bad_rows += report.bad_rows;
    rows.insert(rows.end(), report.first_bad.begin(), report.first_bad.end());
  }
  auto const source = [&](BadRow const& row) {
    return std::find_if(plan.sources.begin(), plan.sources.end(),
                        [&](Source const& candidate) { return candidate.path == row.file; }) -
           plan.sources.begin();
  };
  std::sort(rows.begin(), rows.end(), [&](BadRow const& left, BadRow const& right) {
    return std::pair(source(left), left.line) < std::pair(source(right), right.line);
  });
  rows.resize(std::min(rows.size(), PrepareReport::most_listed));
  all.first_bad = std::move(rows);
  return all;
}

/// Blocks on all ranks, then the cuts. The file of the cuts says that all blocks are done.
std::vector<Cut> encode_all(PrepareRequest const& request, Plan const& plan, WorkFolder const& work,
                            Communicator& control) {
  auto const rows = plan.rows();
  auto const allowed = allowed_bad_rows(request, rows);
  PrepareReport seen;
  on_all_ranks(control, [&] {
    try {
      seen = encode_blocks(request, plan.recipe, plan.sources, plan.totals, work, control.rank(),
                           control.size(), allowed);
    } catch (...) {
      try {  // the others need not go on
        write_file(work.stop(), "0", Durability::cached);
      } catch (Error const&) {
      }
      throw;
    }
  });
  require_few_bad_rows(gather_bad(control, seen, plan), rows, request.strict, allowed);

  std::vector<Cut> cuts;
  on_all_ranks(control, [&] {
    if (!control.is_root()) return;
    std::int64_t const size = block_rows(rows), blocks = (rows + size - 1) / size;
    std::vector<std::int64_t> bytes;
    std::int64_t usable = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      auto const note = read_note(work.block_note(block));
      VLR_IO(note.has_value(), text(work.block_note(block).string(), " is not to be seen"),
             "the output folder must be the same file system on all ranks");
      bytes.push_back(note->bytes);
      usable += note->report.rows;
    }
    VLR_INPUT(usable > 0, text("none of the ", rows, " rows is usable"),
              "`vlrerank check` says what is wrong with them");
    cuts = cut_blocks(bytes, request.shard_bytes);
    write_file(work.cuts(), to_json(cuts));
  });
  return cuts;
}

PrepareResult make_set(PrepareRequest const& request, Plan& plan, WorkFolder const& work,
                       Communicator& control) {
  bool resumed = false;
  on_all_ranks(control, [&] {
    if (!control.is_root()) return;
    Json const identity = {{"recipe", to_json(plan.recipe)},
                           {"name", request.name},
                           {"shard_bytes", request.shard_bytes}};
    resumed = open_work(work, identity.dump(-1, ' ', false, Json::error_handler_t::replace));
  });
  resumed = ask_root(control, resumed);
  if (!ask_root(control, resumed && read_cuts(work.cuts()).has_value())) {
    count_all_rows(plan, control);
    encode_all(request, plan, work, control);
  }
  control.barrier();

  PrepareResult result;
  on_all_ranks(control, [&] {
    auto const cuts = read_cuts(work.cuts());
    VLR_IO(cuts.has_value(),
           text(work.cuts().string(), " is not to be seen on rank ", control.rank()),
           "the output folder must be the same file system on all ranks");
    if (fs::exists(work.shards())) return;  // a killed run was publishing already
    for (std::size_t i = 0; i < cuts->size(); ++i)
      if (static_cast<int>(i) % control.size() == control.rank())
        assemble(work, request, plan.recipe, (*cuts)[i], static_cast<int>(i));
  });
  on_all_ranks(control, [&] {
    if (!control.is_root()) return;
    write_file(work.shards(), "[]");
    result = publish(work, request, plan.recipe, *read_cuts(work.cuts()));
  });
  on_all_ranks(control, [&] {
    if (!control.is_root()) result = read_published(request);
  });
  result.cached = false;
  result.resumed = resumed;
  return result;
}

}  // namespace

namespace {

/// The set that is there already, when it is what the request asks for and its media are unchanged.
/// Its bad rows count as they would have when it was made.
std::optional<PrepareResult> find_set(PrepareRequest const& request, Plan const& plan,
                                      Communicator& control) {
  bool const there = ask_root(
      control, control.is_root() && !request.overwrite && is_published(request, plan.recipe));
  if (!there) return {};
  bool fresh = false;
  on_all_ranks(control, [&] { fresh = media_unchanged(request, control.rank(), control.size()); });
  if (all_reduce_value(control, fresh ? 1 : 0, Reduce::min) == 0) return {};
  auto const result = read_published(request);
  auto const rows = result.report.rows + result.report.bad_rows;
  require_few_bad_rows(result.report, rows, request.strict, allowed_bad_rows(request, rows));
  return result;
}

}  // namespace

PrepareResult prepare(PrepareRequest const& request, Communicator& control) {
  auto plan = make_plan(request, control);
  WorkFolder const work{request.output / ".prepare"};
  auto const lock_file = request.output / ".lock";
  // Of a job that is at work here, or was killed while it tidied up.
  bool const traces =
      ask_root(control, control.is_root() && (fs::exists(work.path) || fs::exists(lock_file)));
  if (auto const found = find_set(request, plan, control); found && !traces) return *found;
  bool const made = !fs::exists(request.output);
  std::unique_ptr<FileLock> lock;
  on_all_ranks(control, [&] {
    if (!control.is_root()) return;
    make_directories(request.output);
    lock = std::make_unique<FileLock>(lock_file);
  });
  // Another job may have made the set while this one waited.
  if (auto const found = find_set(request, plan, control)) {
    if (control.is_root()) fs::remove_all(work.path);
    return *found;
  }
  try {
    return make_set(request, plan, work, control);
  } catch (Error const&) {
    // All ranks are here: on_all_ranks() agreed upon the error.
    control.barrier();
    if (control.is_root()) {
      std::error_code ignored;
      fs::remove_all(work.path, ignored);
      lock.reset();
      if (made) fs::remove(request.output, ignored);  // only when it is empty
    }
    control.barrier();
    throw;
  }
}

std::vector<ShardSet> open_or_prepare(PrepareRequest const& request, fs::path const& cache,
                                      Communicator& control) {
  std::vector<ShardSet> sets;
  for (auto const& input : request.inputs) {
    auto part = request;
    part.inputs = {input};
    part.output = input;
    if (!looks_like_shards(input)) {
      auto const plan = make_plan(part, control);
      auto const recipe = to_json(plan.recipe);
      part.output = cache / hex(shards::hash_bytes(recipe.data(), recipe.size()));
      auto const result = prepare(part, control);
      if (request.notice && result.report.bad_rows > 0)
        request.notice(text(result.report.bad_rows, " bad rows are left out of ", input,
                            ", first: ", result.report.first_bad.front().text()));
    }
    sets.push_back(ShardSet::open(part.output));
    sets.back().require_recipe(
        {request.tokenizer->fingerprint(), request.encode, request.image, "", request.video});
  }
  return sets;
}

}  // namespace vlrerank
