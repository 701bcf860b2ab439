// app/environment.hpp -- the one way to the process's environment, handed to rooms as a function.
#pragma once

#include <cstdlib>

namespace vlrerank {

/// nullptr when the variable is not set.
inline char const* environment(char const* name) {
  return std::getenv(name);
}

}  // namespace vlrerank
