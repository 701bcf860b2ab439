// params/full.hpp -- full fine-tuning: the model's own tensors move into flat buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "config/settings.hpp"
#include "model/parameters.hpp"
#include "params/arena.hpp"

namespace vlrerank {

/// Copies every parameter of a part that is not frozen into arenas (float32, one arena a decoder
/// layer and one for the rest) and binds the model's slots to them. The order of the parameters
/// decides the layout, so it is the same on every rank. Throws Error (exit 2) when all is frozen.
std::vector<Arena> attach_full(std::vector<Parameter> const& parameters,
                               TrainableSettings const& settings, std::int64_t multiple,
                               at::Device device);

}  // namespace vlrerank
