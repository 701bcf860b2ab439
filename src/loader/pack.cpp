// loader/pack.cpp -- runs, keys, positions, pictures of a packed batch.
#include "loader/pack.hpp"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/error.hpp"
#include "loader/order.hpp"
#include "media/patches.hpp"

namespace vlrerank {
namespace {

constexpr std::int64_t patch_values = 1536;
/// Stands for "no document" in the key of a prefix token, which all documents share.
constexpr std::uint64_t prefix_document = ~std::uint64_t{0};

class Packer {
 public:
  Packer(PromptIds const& prompt_ids, bool share_prefix)
      : prompt_ids_(prompt_ids), share_prefix_(share_prefix) {}

  void add(Piece const& piece, StoredRow const& stored) {
    auto const& row = stored.row;
    bool const share = share_prefix_ && row.prefix_end > 0 && piece.documents.size() > 1;
    Run prefix;
    bool first = true;
    for (auto const document : piece.documents) {
      auto const& pair = row.pairs.at(static_cast<std::size_t>(document));
      auto const grids = grids_of(row, pair);
      auto const positions = rope_positions(pair.ids, grids, prompt_ids_);
      auto const length = static_cast<std::int32_t>(pair.ids.size());
      auto const cut = share ? row.prefix_end : 0;
      Source const source{piece.row, document, row, stored, pair, positions};
      if (share && first) prefix = append(source, 0, cut, {});
      auto const run = append(source, cut, length, prefix);
      last_.push_back(run.end - 1);
      labels_.push_back(pair.label);
      batch_.rows.push_back(piece.row);
      batch_.documents.push_back(document);
      first = false;
    }
  }

  PackedBatch finish() {
    auto const tokens = static_cast<std::int64_t>(ids_.size());
    batch_.ids = tensor(ids_);
    batch_.positions =
        at::stack({tensor(positions_[0]), tensor(positions_[1]), tensor(positions_[2])});
    batch_.token_key = tensor(keys_);
    if (static_cast<std::int64_t>(kv_index_.size()) != tokens) batch_.kv_index = tensor(kv_index_);
    batch_.cu_q_device = at::tensor(batch_.cu_q, at::kInt);
    batch_.cu_k_device = at::tensor(batch_.cu_k, at::kInt);
    batch_.last = tensor(last_);
    batch_.labels = at::tensor(labels_, at::kFloat);
    batch_.visual_token = tensor(visual_token_);
    batch_.visual_source = tensor(visual_source_);
    if (patches_ > 0) {
      batch_.pixels = at::empty({patches_, patch_values}, at::kByte);
      auto* out = batch_.pixels.mutable_data_ptr<std::uint8_t>();
      for (std::size_t i = 0; i < pictures_.size(); ++i) {
        auto const grid = batch_.grids[i];
        patchify(*pictures_[i], grid, out);
        out += std::int64_t{grid.t} * grid.h * grid.w * patch_values;
      }
    }
    return std::move(batch_);
  }

 private:
  struct Run {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Source {
    std::int64_t number;
    std::int32_t document;
    EncodedRow const& row;
    StoredRow const& stored;
    EncodedPair const& pair;
    std::array<std::vector<std::int32_t>, 3> const& positions;
  };

  static at::Tensor tensor(std::vector<std::int64_t> const& values) {
    auto out = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
    if (!values.empty())
      std::memcpy(out.data_ptr(), values.data(), values.size() * sizeof(values[0]));
    return out;
  }

  static std::vector<Grid> grids_of(EncodedRow const& row, EncodedPair const& pair) {
    std::vector<Grid> grids;
    for (auto const m : pair.media) grids.push_back(row.media.at(static_cast<std::size_t>(m)).grid);
    return grids;
  }

  /// Appends tokens [from, to) of a pair as one run that also sees the tokens of `before`.
  Run append(Source const& source, std::int32_t from, std::int32_t to, Run before) {
    Run const run{static_cast<std::int64_t>(ids_.size()),
                  static_cast<std::int64_t>(ids_.size()) + (to - from)};
    if (batch_.cu_q.empty()) batch_.cu_q = batch_.cu_k = {0};
    auto features = Features(*this, source);
    for (std::int32_t i = 0; i < to; ++i) {
      auto const id = source.pair.ids[static_cast<std::size_t>(i)];
      bool const visual = id == prompt_ids_.image_pad || id == prompt_ids_.video_pad;
      auto const feature = visual ? features.next() : -1;
      if (i < from) continue;
      if (visual) {
        visual_token_.push_back(static_cast<std::int64_t>(ids_.size()));
        visual_source_.push_back(feature);
      }
      for (std::size_t axis = 0; axis < 3; ++axis)
        positions_[axis].push_back(source.positions[axis][static_cast<std::size_t>(i)]);
      ids_.push_back(id);
      auto const document =
          i < source.row.prefix_end ? prefix_document : static_cast<std::uint64_t>(source.document);
      keys_.push_back(
          static_cast<std::int64_t>(mix(mix(static_cast<std::uint64_t>(source.number), document),
                                        static_cast<std::uint64_t>(i))));
    }
    for (auto t = before.begin; t < before.end; ++t) kv_index_.push_back(t);
    for (auto t = run.begin; t < run.end; ++t) kv_index_.push_back(t);
    batch_.cu_q.push_back(static_cast<std::int32_t>(ids_.size()));
    batch_.cu_k.push_back(static_cast<std::int32_t>(kv_index_.size()));
    auto const queries = static_cast<std::int32_t>(run.end - run.begin);
    auto const keys = queries + static_cast<std::int32_t>(before.end - before.begin);
    batch_.longest_q = std::max(batch_.longest_q, queries);
    batch_.longest_k = std::max(batch_.longest_k, keys);
    return run;
  }

  /// First merged feature of a medium, which is stored on first use.
  std::int64_t picture(Source const& source, std::int32_t medium) {
    auto const& bytes = source.stored.pixels.at(static_cast<std::size_t>(medium));
    auto const grid = source.row.media.at(static_cast<std::size_t>(medium)).grid;
    auto const hash = XXH3_128bits(bytes.data(), bytes.size());
    auto const key = std::make_tuple(hash.high64, hash.low64, grid.h, grid.w);
    auto const [at, fresh] = first_feature_.try_emplace(key, patches_ / 4);
    if (fresh) {
      pictures_.push_back(&bytes);
      batch_.grids.push_back(grid);
      patches_ += std::int64_t{grid.t} * grid.h * grid.w;
    }
    return at->second;
  }

  /// Walks the merged features of a pair's media in prompt order.
  class Features {
   public:
    Features(Packer& packer, Source const& source) : packer_(packer), source_(source) {}
    std::int64_t next() {
      if (left_ == 0) {
        VLR_REQUIRE(medium_ < source_.pair.media.size(),
                    text("row ", source_.number, " has more picture tokens than pictures"),
                    "run `vlrerank prepare` again; the shard is inconsistent");
        auto const m = source_.pair.media[medium_++];
        feature_ = packer_.picture(source_, m);
        left_ = source_.row.media[static_cast<std::size_t>(m)].grid.tokens();
      }
      --left_;
      return feature_++;
    }

   private:
    Packer& packer_;
    Source const& source_;
    std::size_t medium_ = 0;
    std::int64_t feature_ = 0;
    std::int64_t left_ = 0;
  };

  PromptIds const& prompt_ids_;
  bool share_prefix_;
  PackedBatch batch_;
  std::vector<std::int64_t> ids_, keys_, kv_index_, last_, visual_token_, visual_source_;
  std::array<std::vector<std::int64_t>, 3> positions_;
  std::vector<float> labels_;
  std::vector<std::vector<std::uint8_t> const*> pictures_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::int32_t, std::int32_t>, std::int64_t>
      first_feature_;
  std::int64_t patches_ = 0;
};

}  // namespace

PackedBatch pack(MicroBatch const& pieces, std::vector<StoredRow> const& rows,
                 PromptIds const& prompt_ids, bool share_prefix) {
  VLR_REQUIRE(pieces.size() == rows.size(), "pieces and rows differ in number",
              "this is a bug in the caller");
  Packer packer(prompt_ids, share_prefix);
  for (std::size_t i = 0; i < pieces.size(); ++i) packer.add(pieces[i], rows[i]);
  return packer.finish();
}

PackedBatch to_device(PackedBatch batch, at::Device device) {
  for (auto* tensor : {&batch.ids, &batch.positions, &batch.token_key, &batch.cu_q_device,
                       &batch.cu_k_device, &batch.kv_index, &batch.last, &batch.labels,
                       &batch.pixels, &batch.visual_token, &batch.visual_source})
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  return batch;
}

}  // namespace vlrerank
