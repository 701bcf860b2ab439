// app/contract.hpp -- the prompt and limits that a model was trained with, kept when it is used.
#pragma once

#include "config/settings.hpp"
#include "train/session.hpp"

namespace vlrerank {

/// Reads vlrerank.json beside --adapter, or in the --model directory, if there is one. An option
/// that still has its default takes the trained value; one that was set otherwise stays, with a
/// warning.
/// @return  the settings to score with
Settings with_contract(Settings settings, Log const& log);

}  // namespace vlrerank
