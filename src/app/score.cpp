// app/score.cpp -- `vlrerank score`: rows in, scores out, in order, as a stream.
// The root reads a block of lines and shares it; every rank encodes and scores its part; the root
// prints them in the order of the input.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/commands.hpp"
#include "app/contract.hpp"
#include "app/environment.hpp"
#include "data/rows.hpp"
#include "loader/pack.hpp"
#include "prepare/media_cache.hpp"
#include "prepare/prepare.hpp"
#include "train/session.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

constexpr std::int64_t rows_a_rank = 16;
constexpr std::int64_t default_micro_batch_tokens = 8192;
constexpr std::size_t media_cache_bytes = std::size_t{64} << 20;

class Scorer {
 public:
  Scorer(Settings const& settings, Session& session)
      : settings_(settings),
        session_(session),
        request_(prepare_request(settings.data, settings.run.seed, session.tokenizer)),
        media_(request_.image, media_cache_bytes) {
    request_.rows.labels_required = false;
    request_.rows.duplicates = Duplicates::keep;  // one score a document of the row
  }

  /// The output line of one input row: scores, or why there are none.
  json score(std::string const& line, std::int64_t number) {
    try {
      auto const parsed = parse_row(line, input_name(), number, request_.rows);
      return scored(encode(parsed.sample), number);
    } catch (Error const& error) {
      if (error.code() != Exit::input) throw;
      return {{"line", number}, {"error", error.summary()}};
    }
  }
  std::string input_name() const {
    return settings_.score.input == "-" ? "standard input" : settings_.score.input;
  }

 private:
  StoredRow encode(Sample const& sample) {
    StoredRow stored;
    std::vector<MediumGrid> grids;
    for (auto const* part : media_of(sample)) {
      auto const medium = media_.load(*part);
      grids.push_back(medium->grid);
      stored.pixels.push_back(medium->pixels);
    }
    stored.row = encode_row(sample, std::move(grids), session_.tokenizer, session_.prompt_ids,
                            request_.encode);
    return stored;
  }

  json scored(StoredRow const& stored, std::int64_t number) {
    std::vector<float> logits;
    std::vector<double> scores;
    for (auto const& batch : batches(stored)) {
      auto const result = session_.model->forward(to_device(batch, session_.device), {}).cpu();
      auto const* values = result.const_data_ptr<float>();
      logits.insert(logits.end(), values, values + result.numel());
    }
    for (float const logit : logits) {
      VLR_CHECK_(Exit::diverged, std::isfinite(logit),
                 text("line ", number, ": a score is ", logit),
                 "the model or the adapter holds numbers that are not finite");
      scores.push_back(1 / (1 + std::exp(-double{logit})));
    }
    json out = {{"line", number}, {"scores", scores}, {"logits", logits}};
    if (settings_.score.top > 0) out["top"] = best(scores);
    return out;
  }

  /// The row's documents in parts of at most the token budget.
  std::vector<PackedBatch> batches(StoredRow const& stored) const {
    auto const budget = settings_.batch.micro_batch_tokens > 0 ? settings_.batch.micro_batch_tokens
                                                               : default_micro_batch_tokens;
    bool const share = settings_.batch.share_prefix;
    std::vector<PackedBatch> out;
    Piece piece;
    std::int64_t tokens = 0;
    auto flush = [&] {
      if (!piece.documents.empty())
        out.push_back(pack({piece}, {stored}, session_.prompt_ids, share));
      piece.documents.clear();
      tokens = 0;
    };
    for (std::size_t i = 0; i < stored.row.pairs.size(); ++i) {
      auto const length = static_cast<std::int64_t>(stored.row.pairs[i].ids.size());
      auto const own = share && !piece.documents.empty() ? length - stored.row.prefix_end : length;
      if (tokens + own > budget) flush();
      tokens += piece.documents.empty() ? length : own;
      piece.documents.push_back(static_cast<std::int32_t>(i));
    }
    flush();
    return out;
  }

  /// Numbers of the best documents, the best first.
  std::vector<std::size_t> best(std::vector<double> const& scores) const {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return scores[a] > scores[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(settings_.score.top)));
    return order;
  }

  Settings const& settings_;
  Session& session_;
  PrepareRequest request_;
  MediaCache media_;
};

/// A line of the input and its number.
using Row = std::pair<std::int64_t, std::string>;

/// "number TAB line LF" of each row: lines hold no line feed, and need not be valid UTF-8.
std::string to_text(std::vector<Row> const& rows) {
  std::string out;
  for (auto const& [number, line] : rows) out += text(number, '\t', line, '\n');
  return out;
}

std::vector<Row> from_text(std::string_view lines) {
  std::vector<Row> rows;
  while (!lines.empty()) {
    auto const tab = lines.find('\t');
    auto const end = lines.find('\n');
    rows.emplace_back(std::stoll(std::string(lines.substr(0, tab))),
                      std::string(lines.substr(tab + 1, end - tab - 1)));
    lines.remove_prefix(end + 1);
  }
  return rows;
}

std::string dump(json const& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// How many rows were seen, and how many of them had no score.
struct Count {
  std::int64_t rows = 0;
  std::int64_t failed = 0;
};

/// names.md's rule: the larger of 10 rows and 0.1 %, or as told.
void check_bad_rows(Count const& count, DataSettings const& data) {
  auto const limit = data.strict              ? 0
                     : data.max_bad_rows >= 0 ? data.max_bad_rows
                                              : std::max<std::int64_t>(10, count.rows / 1000);
  VLR_INPUT(count.failed <= limit,
            text(count.failed, " of ", count.rows, " rows have no score, more than the ", limit,
                 " that are allowed; their lines say why"),
            "mend the rows, or raise --max-bad-rows");
}

/// Scores one block of lines over all ranks; the root prints it in order.
void score_block(Scorer& scorer, std::vector<Row> const& block, Communicator& control,
                 Count& count) {
  auto const rows = from_text(broadcast_text(control, to_text(block)));
  json mine = json::array();
  for (std::size_t i = static_cast<std::size_t>(control.rank()); i < rows.size();
       i += static_cast<std::size_t>(control.size()))
    mine.push_back(scorer.score(rows[i].second, rows[i].first));
  auto const texts = all_gather_text(control, dump(mine));
  if (!control.is_root()) return;
  std::vector<json> parts;
  for (auto const& part : texts) parts.push_back(json::parse(part));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto const& line = parts[i % parts.size()][i / parts.size()];
    std::printf("%s\n", dump(line).c_str());
    ++count.rows;
    if (!line.contains("error")) continue;
    ++count.failed;
    std::fprintf(stderr, "%s:%lld: %s\n", scorer.input_name().c_str(),
                 static_cast<long long>(rows[i].first), line["error"].get<std::string>().c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int run_score(Settings const& given, Launch const& launch) {
  auto& control = launch.control;
  Log const log = [&](std::string const& line) {
    if (control.is_root()) std::fprintf(stderr, "%s\n", line.c_str());
  };
  auto const settings = with_contract(given, log);
  auto session = open_session(settings, Purpose::scoring, 1, environment, log);
  Scorer scorer(settings, session);
  std::vector<Row> block;
  Count count;
  auto const flush = [&] {
    broadcast_text(control, "more");
    score_block(scorer, block, control, count);
    block.clear();
    check_bad_rows(count, settings.data);
  };
  if (control.is_root()) {
    auto const full = static_cast<std::size_t>(rows_a_rank * control.size());
    for_each_line(settings.score.input, [&](std::int64_t number, std::string_view line) {
      block.emplace_back(number, line);
      if (block.size() == full) flush();
    });
    if (!block.empty()) flush();
    broadcast_text(control, "end");
  } else {
    while (broadcast_text(control, "") == "more") score_block(scorer, {}, control, count);
  }
  return 0;
}

}  // namespace vlrerank
