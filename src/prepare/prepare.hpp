// prepare/prepare.hpp -- JSON lines become a shard set, over all ranks: the same bytes for any
// number of them. A finished set is found again, a killed run goes on where it stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "data/encode.hpp"
#include "data/rows.hpp"
#include "media/image.hpp"
#include "media/video.hpp"
#include "prepare/report.hpp"
#include "shards/shard.hpp"
#include "tokenizer/tokenizer.hpp"

namespace vlrerank {

struct PrepareRequest {
  std::vector<std::string> inputs;  ///< JSONL files, "path" or "path#count" for a sample of rows
  std::filesystem::path output;     ///< folder of the set
  std::string name = "part";        ///< shards are NAME-00000.h5
  Tokenizer const* tokenizer = nullptr;
  EncodeOptions encode;
  ImageOptions image;
  VideoOptions video;
  RowOptions rows;
  std::uint64_t seed = 42;                             ///< of the samples
  std::int64_t max_bad_rows = -1;                      ///< -1: the larger of 10 rows and 0.1 %
  bool strict = false;                                 ///< stop at the first bad row
  bool overwrite = false;                              ///< make the set again although it is there
  std::int64_t shard_bytes = std::int64_t{512} << 20;  ///< about; cut between blocks of rows
  /// Called after each block of rows of this rank: how many it has done, how many it will do.
  std::function<void(std::int64_t, std::int64_t)> progress;
  std::function<void(std::string const&)> notice;  ///< takes what open_or_prepare() has to tell
};

struct PrepareResult {
  bool cached = false;   ///< the set was there already
  bool resumed = false;  ///< work of a killed run was taken over
  PrepareReport report;
  std::vector<ShardFile> shards;
};

/// What a command's settings ask for; `inputs` and `output` are left to the caller.
PrepareRequest prepare_request(DataSettings const& data, std::uint64_t seed,
                               Tokenizer const& tokenizer);

/// Collective. Makes request.output a shard set of the inputs, or finds that it is one: same
/// tokenizer, options, file contents, and sizes and times of the media files.
///
/// The folder holds a valid set (the old one, if any) until the new one is complete; what is under
/// way lies in request.output/.prepare. Every rank throws the same Error: exit 3 for too many bad
/// rows (the first ones named) or an empty input, exit 74 for a full disk. Nothing half-made is
/// left then; only a kill leaves .prepare, for the next run to go on from.
PrepareResult prepare(PrepareRequest const& request, Communicator& control);

/// Collective. One set for each input: a folder of shards is opened and its recipe compared with
/// the request (exit 3), a JSONL file is prepared into a folder of `cache` named by its content's
/// fingerprint.
std::vector<ShardSet> open_or_prepare(PrepareRequest const& request,
                                      std::filesystem::path const& cache, Communicator& control);

}  // namespace vlrerank
