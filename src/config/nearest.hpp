// config/nearest.hpp -- what a mistyped name was probably meant to be.
#pragma once

#include <string>
#include <vector>

namespace vlrerank {

/// The candidate with the smallest edit distance to `name` (insert, delete, replace, or swap of
/// neighbours, one each), the first of equals; `_` counts as `-`. Empty when nothing is near:
/// within two fifths of the longer length (2 for short names), or with all words of `name`.
std::string nearest(std::string const& name, std::vector<std::string> const& candidates);

}  // namespace vlrerank
