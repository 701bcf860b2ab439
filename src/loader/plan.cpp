// loader/plan.cpp -- choose documents, weigh them, balance ranks, cut micro-batches.
#include "loader/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "core/error.hpp"
#include "loader/order.hpp"

namespace vlrerank {
namespace {

/// What a piece costs a rank, in tokens: attention and vision are small beside the matrix products
/// of these lengths, so tokens and patches suffice for balance.
std::int64_t cost(Piece const& piece) {
  return piece.tokens + piece.patches / 4;
}

/// Number of losses a row adds: documents, or groups of one positive with the row's negatives.
std::int64_t losses_of(Piece const& piece, std::vector<float> const& labels,
                       PlanSettings const& settings) {
  if (!settings.listwise) return static_cast<std::int64_t>(piece.documents.size());
  std::int64_t groups = 0;
  for (auto const i : piece.documents) {
    std::int32_t below = 0;
    for (auto const j : piece.documents)
      below += labels[static_cast<std::size_t>(j)] < labels[static_cast<std::size_t>(i)];
    groups += labels[static_cast<std::size_t>(i)] > 0 && below + 1 >= settings.min_group_size;
  }
  return groups;
}

/// Longest pieces first, each to the rank with the least work so far (LPT, Graham 1969).
/// @return  the piece numbers of `rank`, in their original order
std::vector<std::size_t> balance(std::vector<Piece> const& pieces, int rank, int ranks) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return cost(pieces[a]) > cost(pieces[b]); });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
  std::vector<std::size_t> mine;
  for (auto const i : order) {
    auto const lightest = std::min_element(load.begin(), load.end());
    *lightest += cost(pieces[i]);
    if (lightest - load.begin() == rank) mine.push_back(i);
  }
  std::sort(mine.begin(), mine.end());
  return mine;
}

/// First-fit over the last few micro-batches, in order; a piece above the budget stands alone.
constexpr std::size_t open_batches = 8;

std::vector<MicroBatch> cut(std::vector<Piece> const& pieces, std::vector<std::size_t> const& mine,
                            std::int64_t budget) {
  std::vector<MicroBatch> batches;
  std::vector<std::int64_t> used;
  for (auto const i : mine) {
    std::size_t at = batches.size() > open_batches ? batches.size() - open_batches : 0;
    while (at < batches.size() && used[at] + pieces[i].tokens > budget) ++at;
    if (at == batches.size()) {
      batches.emplace_back();
      used.push_back(0);
    }
    batches[at].push_back(pieces[i]);
    used[at] += pieces[i].tokens;
  }
  return batches;
}

/// Splits a row's documents so that no part exceeds the budget (a single long document may).
void split_to_budget(Piece piece, RowIndex const& index, std::int64_t budget, bool share_prefix,
                     std::vector<Piece>& out) {
  if (piece.tokens <= budget || piece.documents.size() == 1) {
    out.push_back(std::move(piece));
    return;
  }
  Piece part = piece;
  part.documents.clear();
  for (auto const document : piece.documents) {
    auto longer = part.documents;
    longer.push_back(document);
    if (!part.documents.empty() && piece_tokens(index, longer, share_prefix) > budget) {
      part.tokens = piece_tokens(index, part.documents, share_prefix);
      out.push_back(part);
      longer = {document};
    }
    part.documents = longer;
  }
  part.tokens = piece_tokens(index, part.documents, share_prefix);
  out.push_back(part);
}

}  // namespace

std::int64_t piece_tokens(RowIndex const& index, std::vector<std::int32_t> const& documents,
                          bool share_prefix) {
  std::int64_t tokens = 0;
  for (auto const i : documents) tokens += index.pair_tokens[static_cast<std::size_t>(i)];
  if (share_prefix && !documents.empty())
    tokens -= static_cast<std::int64_t>(documents.size() - 1) * index.prefix;
  return tokens;
}

TrainPlan::TrainPlan(DataSet const& data, PlanSettings const& settings)
    : data_(data), settings_(settings) {
  auto const batch = settings.global_batch_size;
  VLR_REQUIRE(batch > 0, "a step of no rows", "this is a bug in the caller");
  steps_per_epoch_ = settings.drop_last ? data.rows() / batch : (data.rows() + batch - 1) / batch;
}

StepPlan TrainPlan::step(std::int64_t step, int rank, int ranks) const {
  StepPlan plan;
  plan.step = step;
  plan.epoch = step / steps_per_epoch_;
  if (cached_epoch_ != plan.epoch) {
    order_ = epoch_order(data_.rows(), settings_.seed, plan.epoch,
                         settings_.shuffle ? Shuffle::yes : Shuffle::no);
    cached_epoch_ = plan.epoch;
  }
  auto const first = (step % steps_per_epoch_) * settings_.global_batch_size;
  auto const last = std::min(first + settings_.global_batch_size, data_.rows());
  plan.progress = static_cast<double>(plan.epoch) +
                  std::min(1.0, static_cast<double>(last) / static_cast<double>(data_.rows()));
  plan.rows = last - first;

  std::vector<Piece> chosen;
  std::vector<RowIndex> indices;
  std::vector<std::int64_t> losses;
  for (auto i = first; i < last; ++i) {
    Piece piece;
    piece.row = order_[static_cast<std::size_t>(i)];
    plan.row_numbers.push_back(piece.row);
    indices.push_back(data_.index(piece.row));
    auto const& index = indices.back();
    piece.documents =
        choose_documents(index.labels, settings_.max_positives, settings_.max_negatives,
                         settings_.seed, plan.epoch, piece.row);
    piece.tokens = piece_tokens(index, piece.documents, settings_.share_prefix);
    piece.patches = index.patches;
    losses.push_back(losses_of(piece, index.labels, settings_));
    plan.documents += static_cast<std::int64_t>(piece.documents.size());
    chosen.push_back(std::move(piece));
  }

  auto const total = std::accumulate(losses.begin(), losses.end(), std::int64_t{0});
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    auto count = total;
    if (settings_.sum_of_means) {
      auto const window = static_cast<std::size_t>(settings_.window);
      auto const begin = i / window * window;
      auto const end = std::min(begin + window, losses.size());
      count = settings_.replicas *
              std::accumulate(losses.begin() + static_cast<std::ptrdiff_t>(begin),
                              losses.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0});
    }
    if (losses[i] == 0 || chosen[i].documents.empty()) continue;
    chosen[i].weight = 1.0 / static_cast<double>(count);
    // A group's softmax needs all its scores at once, so a listwise row is never split.
    auto const budget = settings_.listwise ? chosen[i].tokens : settings_.micro_batch_tokens;
    split_to_budget(chosen[i], indices[i], budget, settings_.share_prefix, pieces);
  }
  plan.mine = cut(pieces, balance(pieces, rank, ranks), settings_.micro_batch_tokens);
  return plan;
}

std::vector<MicroBatch> evaluation_plan(DataSet const& data, std::int64_t micro_batch_tokens,
                                        bool share_prefix, int rank, int ranks) {
  std::vector<Piece> pieces;
  for (std::int64_t row = 0; row < data.rows(); ++row) {
    auto const index = data.index(row);
    Piece piece;
    piece.row = row;
    piece.documents.resize(index.labels.size());
    std::iota(piece.documents.begin(), piece.documents.end(), 0);
    piece.tokens = piece_tokens(index, piece.documents, share_prefix);
    piece.patches = index.patches;
    split_to_budget(std::move(piece), index, micro_batch_tokens, share_prefix, pieces);
  }
  return cut(pieces, balance(pieces, rank, ranks), micro_batch_tokens);
}

}  // namespace vlrerank
