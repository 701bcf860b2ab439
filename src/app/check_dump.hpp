// app/check_dump.hpp -- what became of single rows, as JSON: `vlrerank check --dump`.
// Internal to the command. The output's fields are a promise to outside checks: see docs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "media/video.hpp"
#include "prepare/prepare.hpp"

namespace vlrerank {

enum class DumpPositions { no, yes };

/// What a row is read with.
struct RowReader {
  PrepareRequest const& request;
  PromptIds const& prompt_ids;
};

/// One JSON object: the row's pairs with their ids and its pictures with their pixels' hashes, or
/// why it is rejected.
std::string dump_row(RowReader const& reader, std::string_view bytes, std::string const& file,
                     std::int64_t line, DumpPositions positions);

/// The limits of pictures, as they hold for videos.
VideoOptions video_options(ImageOptions const& options);

}  // namespace vlrerank
