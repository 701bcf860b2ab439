// loader/pack.hpp -- rows and their chosen documents become the tensors the model computes on.
#pragma once

#include <vector>

#include "data/encode.hpp"
#include "loader/batch.hpp"
#include "loader/plan.hpp"
#include "shards/shard.hpp"

namespace vlrerank {

/// Packs pieces end to end on the CPU. Equal pictures of a batch are stored once.
///
/// @param rows          the stored row of each piece
/// @param share_prefix  a row's common prefix becomes one run that its documents attend to;
///                      otherwise every document is a run of its own
PackedBatch pack(MicroBatch const& pieces, std::vector<StoredRow> const& rows,
                 PromptIds const& prompt_ids, bool share_prefix);

/// The same tensors on `device`; copies are enqueued on the current stream when pinned.
PackedBatch to_device(PackedBatch batch, at::Device device);

}  // namespace vlrerank
