// data/positions.cpp -- 3-D rotary positions: time, row, column (reference README, "Positions").
#include <algorithm>

#include "core/error.hpp"
#include "data/encode.hpp"

namespace vlrerank {

std::array<std::vector<std::int32_t>, 3> rope_positions(std::vector<std::int32_t> const& ids,
                                                        std::vector<Grid> const& grids,
                                                        PromptIds const& prompt_ids) {
  std::array<std::vector<std::int32_t>, 3> positions;
  for (auto& axis : positions) axis.reserve(ids.size());
  auto const put = [&positions](std::int32_t t, std::int32_t y, std::int32_t x) {
    positions[0].push_back(t);
    positions[1].push_back(y);
    positions[2].push_back(x);
  };
  std::int32_t next = 0;
  std::size_t medium = 0;
  std::int32_t frame = 0;  // frame pairs of the medium that were seen
  std::size_t at = 0;
  while (at < ids.size()) {
    auto const pad = ids[at];
    if (pad != prompt_ids.image_pad && pad != prompt_ids.video_pad) {
      put(next, next, next);
      ++next;
      ++at;
      continue;
    }
    VLR_REQUIRE(medium < grids.size(),
                text("pads at token ", at, " belong to medium ", medium, " of ", grids.size()),
                "this is a bug in the caller: give the grid of each medium in prompt order");
    auto const rows = grids[medium].h / 2;
    auto const columns = grids[medium].w / 2;
    for (std::int32_t y = 0; y < rows; ++y) {
      for (std::int32_t x = 0; x < columns; ++x, ++at) {
        VLR_REQUIRE(
            at < ids.size() && ids[at] == pad,
            text("medium ", medium, " of ", rows, " x ", columns, " tokens ends at token ", at),
            "this is a bug in the caller: ids and grids must belong together");
        put(next, next + y, next + x);
      }
    }
    next += std::max(rows, columns);
    if (++frame == grids[medium].t) {
      ++medium;
      frame = 0;
    }
  }
  VLR_REQUIRE(medium == grids.size() && frame == 0,
              text("the ids show ", medium, " media, the grids are ", grids.size()),
              "this is a bug in the caller: ids and grids must belong together");
  return positions;
}

}  // namespace vlrerank
