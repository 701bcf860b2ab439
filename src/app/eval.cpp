// app/eval.cpp -- `vlrerank eval`: ranking metrics over whole lists, on any number of ranks.
#include <ATen/Parallel.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/contract.hpp"
#include "app/data.hpp"
#include "app/environment.hpp"
#include "io/files.hpp"
#include "metrics/bootstrap.hpp"
#include "train/figures.hpp"

namespace vlrerank {
namespace {

constexpr std::int64_t default_micro_batch_tokens = 8192;

nlohmann::json metrics_json(Evaluation const& evaluation, Settings const& settings) {
  auto const& m = evaluation.metrics;
  nlohmann::json out;
  for (auto const& [name, value] : ranking::named_values(m)) out[name] = value;
  out["loss"] = evaluation.loss;
  out["groups"] = m.groups;
  out["groups_counted"] = m.counted;
  out["groups_without_positive"] = m.without_positive;
  out["groups_without_negative"] = m.without_negative;
  out["documents"] = m.documents;
  out["positive_mean_logit"] = m.scores.positive_mean;
  out["negative_mean_logit"] = m.scores.negative_mean;
  out["collapsed"] = m.scores.collapsed;
  auto const interval =
      ranking::mrr_interval(evaluation.groups, settings.eval.bootstrap, settings.run.seed);
  out["mrr_low"] = interval.low;
  out["mrr_high"] = interval.high;
  out["seconds"] = evaluation.seconds;
  return out;
}

/// One JSON object a row: where it came from, its scores and metrics.
std::string per_query_lines(DataSet const& data, Evaluation const& evaluation,
                            std::vector<std::int32_t> const& at) {
  std::string lines;
  for (std::size_t i = 0; i < evaluation.groups.size(); ++i) {
    auto const stored = data.read(static_cast<std::int64_t>(i));
    auto const& group = evaluation.groups[i];
    auto const metrics = ranking::group_metrics(group, at);
    nlohmann::json line = {{"file", stored.file},
                           {"line", stored.row.line},
                           {"scores", group.scores},
                           {"labels", group.labels},
                           {"counted", metrics.counted}};
    if (!stored.id.empty()) line["id"] = stored.id;
    if (metrics.counted) {
      line["mrr"] = metrics.mrr;
      line["ndcg"] = metrics.ndcg;
      line["ap"] = metrics.ap;
    }
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace

int run_eval(Settings const& given, Launch const& launch) {
  auto& control = launch.control;
  Log const log = [&](std::string const& line) {
    if (control.is_root()) std::fprintf(stderr, "%s\n", line.c_str());
  };
  auto const settings = with_contract(given, log);
  auto session = open_session(settings, Purpose::scoring, 1, environment, log);
  auto const data = open_data(settings.data.dataset, settings, session.tokenizer,
                              settings.data.cache_dir, control);
  auto const begin = std::chrono::steady_clock::now();
  auto const tokens = settings.batch.micro_batch_tokens > 0 ? settings.batch.micro_batch_tokens
                                                            : default_micro_batch_tokens;
  auto const rows = score_rows(session, data, tokens, settings.batch.share_prefix, control);
  auto evaluation = evaluation_of(rows, loss_parameters(settings.loss), settings.eval.at);
  evaluation.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!control.is_root()) return 0;

  if (!settings.eval.per_query.empty())
    write_file(settings.eval.per_query, per_query_lines(data, evaluation, settings.eval.at));
  auto const out = metrics_json(evaluation, settings);
  if (settings.eval.json) {
    std::printf("%s\n", out.dump().c_str());
    return 0;
  }
  auto const& m = evaluation.metrics;
  fmt::print(
      "{} rows, {} documents; ranked: {} (left out: {} without a positive, {} without a "
      "negative)\n",
      m.groups, m.documents, m.counted, m.without_positive, m.without_negative);
  fmt::print("  mrr {:.4f}  [{:.4f}, {:.4f}] 95 %\n", m.mrr, out["mrr_low"].get<double>(),
             out["mrr_high"].get<double>());
  for (auto const& [name, value] : ranking::named_values(m))
    if (name != "mrr") fmt::print("  {} {:.4f}\n", name, value);
  fmt::print("  loss {:.4f}\n", evaluation.loss);
  if (m.scores.collapsed) fmt::print("warning: the scores have collapsed\n");
  return 0;
}

}  // namespace vlrerank
