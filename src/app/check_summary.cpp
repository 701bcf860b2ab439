// app/check_summary.cpp -- counting rows and saying what a run over them will be like.
#include "app/check_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "train/trainer.hpp"

namespace vlrerank {
namespace {

constexpr float kPositive = 0.5F;

/// Equal queries, media included, have equal hashes; other ones practically never.
std::uint64_t hash_of(Side const& query) {
  std::string all;
  for (auto const& part : query) {
    if (auto const* const words = std::get_if<std::string>(&part)) all += "t" + *words;
    if (auto const* const image = std::get_if<ImageSource>(&part))
      all += "i" + image->path + image->bytes;
    if (auto const* const video = std::get_if<VideoSource>(&part)) {
      all += "v" + video->path;
      for (auto const& frame : video->frames) all += "f" + frame.path + frame.bytes;
    }
    all += '\0';
  }
  return std::hash<std::string>{}(all);
}

std::string gib(double bytes) {
  return fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

}  // namespace

std::int64_t Histogram::total() const {
  std::int64_t sum = 0;
  for (auto const& [value, count] : counts_) sum += count;
  return sum;
}

std::int64_t Histogram::quantile(double share) const {
  auto const wanted = share * static_cast<double>(total());
  std::int64_t seen = 0;
  for (auto const& [value, count] : counts_) {
    seen += count;
    if (static_cast<double>(seen) >= wanted) return value;
  }
  return 0;
}

std::string Histogram::show(std::string const& title) const {
  if (empty()) return "";
  constexpr std::int64_t ranges = 8;
  constexpr double bar = 40;
  auto const low = counts_.begin()->first;
  auto const high = counts_.rbegin()->first;
  auto const width = std::max<std::int64_t>(1, (high - low + ranges) / ranges);
  std::vector<std::int64_t> sums(ranges, 0);
  for (auto const& [value, count] : counts_)
    sums[static_cast<std::size_t>((value - low) / width)] += count;
  auto const most = *std::max_element(sums.begin(), sums.end());
  auto out = fmt::format("{}: least {}, median {}, 90 % {}, 99 % {}, most {}\n", title, low,
                         quantile(0.5), quantile(0.9), quantile(0.99), high);
  for (std::int64_t i = 0; i < ranges && low + i * width <= high; ++i) {
    auto const count = sums[static_cast<std::size_t>(i)];
    auto const length = std::lround(bar * static_cast<double>(count) / static_cast<double>(most));
    out += fmt::format("  {:>7} - {:<7} {:>9} {}\n", low + i * width,
                       std::min(high, low + (i + 1) * width - 1), count,
                       std::string(static_cast<std::size_t>(length), '#'));
  }
  return out;
}

void CheckSummary::add(ParsedRow const& parsed, EncodedRow const& row, Settings const& settings) {
  auto const count = static_cast<std::int64_t>(row.pairs.size());
  std::int64_t high = 0;
  std::int64_t branches = 0;
  for (auto const& pair : row.pairs) {
    high += pair.label >= kPositive ? 1 : 0;
    tokens.add(static_cast<std::int64_t>(pair.ids.size()));
    branches += static_cast<std::int64_t>(pair.ids.size()) - row.prefix_end;
  }
  positives += high;
  only_positives += high == count ? 1 : 0;
  only_negatives += high == 0 ? 1 : 0;
  documents.add(count);
  for (auto const& medium : row.media) image_tokens.add(medium.grid.tokens());
  repeated_queries += queries[hash_of(parsed.sample.query)]++ > 0 ? 1 : 0;

  auto const taken = std::min<std::int64_t>(high, settings.data.max_positives) +
                     std::min<std::int64_t>(count - high, settings.data.max_negatives);
  auto const share = static_cast<double>(taken) / static_cast<double>(count);
  auto const computed = row.prefix_end + static_cast<double>(branches) * share;
  step_documents += static_cast<double>(taken);
  step_tokens += computed;
  longest_row = std::max<std::int64_t>(longest_row, std::llround(computed));
}

std::string show_counts(CheckSummary const& summary) {
  auto const& report = summary.report;
  auto out = fmt::format("rows: {} usable, {} bad\n", report.rows, report.bad_rows);
  for (auto const& [form, rows] : report.forms)
    out += fmt::format("  {} rows of form {}\n", rows, form);
  out += fmt::format("documents: {} ({} positive, {} negative), media: {}\n", report.pairs,
                     summary.positives, report.pairs - summary.positives, report.media);
  if (summary.only_positives > 0)
    out += fmt::format(
        "  {} rows have no negative document: listwise loss and ranking metrics leave them out\n",
        summary.only_positives);
  if (summary.only_negatives > 0)
    out += fmt::format(
        "  {} rows have no positive document: listwise loss and ranking metrics leave them out\n",
        summary.only_negatives);
  if (report.rows > 0 && summary.only_positives == report.rows)
    out += "  warning: there is not one negative document in the data\n";
  out += fmt::format(
      "repeated: {} duplicates, {} documents both positive and negative, {} queries seen before\n",
      report.duplicates, report.conflicts, summary.repeated_queries);
  out += fmt::format("cut by --max-length: {} tokens of {} documents in {} rows\n",
                     report.cut_tokens, report.cut_pairs, report.cut_rows);
  out += summary.tokens.show("tokens a document, with its query");
  out += summary.documents.show("documents a row");
  out += summary.image_tokens.show("tokens a picture or video");
  return out;
}

std::string show_steps(CheckSummary const& summary, Settings const& settings) {
  auto const rows = summary.report.rows;
  try {
    auto const length = run_length(settings, rows, 1);
    auto const taken = std::min(length.global_batch_size, rows);
    auto const share = static_cast<double>(taken) / static_cast<double>(rows);
    return fmt::format(
        "a step: {} rows, about {:.0f} documents and {:.0f} tokens; {} steps an epoch, {} in all\n",
        taken, summary.step_documents * share, summary.step_tokens * share, length.steps_per_epoch,
        length.total_steps);
  } catch (Error const& error) {
    return "warning: " + error.summary() + "\n";
  }
}

std::string show_forecast(CheckSummary const& summary, Settings const& settings,
                          ModelConfig const& config) {
  auto const& t = config.text;
  auto const& v = config.vision;
  auto const hidden = static_cast<double>(t.hidden_size);
  auto const heads = static_cast<double>(t.num_attention_heads * t.head_dim);
  auto const keys = static_cast<double>(t.num_key_value_heads * t.head_dim);
  auto const inner = static_cast<double>(t.intermediate_size);
  auto const layers = static_cast<double>(t.num_hidden_layers);
  auto const layer = hidden * (2 * heads + 2 * keys) + 3 * hidden * inner;
  auto const embedding =
      static_cast<double>(t.vocab_size) * hidden * (config.tie_word_embeddings ? 1 : 2);
  auto const vision =
      static_cast<double>(v.depth) * static_cast<double>(v.hidden_size) *
      (4.0 * static_cast<double>(v.hidden_size) + 2.0 * static_cast<double>(v.intermediate_size));
  auto const parameters = layers * layer + embedding + vision;
  // One pair of rank r on an in x out linear has r (in + out) numbers; all-linear means seven a
  // layer.
  auto const lora =
      layers * settings.lora.rank * (4 * hidden + 2 * heads + 2 * keys + 3 * (hidden + inner));
  bool const full = settings.trainable.tuner == "full";
  auto const trained = full ? layers * layer + embedding : lora;
  // A layer's input in 16 bits for each layer, and one layer's inside while it is recomputed.
  auto const tokens = static_cast<double>(summary.longest_row);
  auto const activations =
      tokens * (layers * hidden * 2 + (6 * hidden + 2 * heads + 3 * inner) * 2);
  auto const state = trained * 16;       // value, gradient and two moments in float32
  auto const passes = full ? 6.0 : 4.0;  // times parameters and tokens: forward 2, backward 2 or 4
  auto const flops = passes * layers * layer * summary.step_tokens * settings.run.epochs;
  constexpr double sustained = 3e14;
  return fmt::format(
      "model: {:.2f} G parameters, {:.1f} M of them trained\n"
      "memory of one process, roughly: weights {} (16 bit), training state {}, longest row {} with "
      "full recomputation: {}\n"
      "arithmetic: {:.3g} FLOP in {} epochs without pictures, {:.2f} h on a GPU that sustains 300 "
      "TFLOP/s\n",
      parameters / 1e9, trained / 1e6, gib(parameters * 2), gib(state), gib(activations),
      gib(parameters * 2 + state + activations), flops, settings.run.epochs,
      flops / sustained / 3600);
}

}  // namespace vlrerank
