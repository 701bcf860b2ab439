// media/named.hpp -- errors that say which picture or video they are about.
#pragma once

#include <string>

#include "core/error.hpp"
#include "media/source.hpp"

namespace vlrerank {

inline std::string name_of(ImageSource const& source) {
  return source.path.empty() ? std::string("inline picture") : source.path;
}

/// Returns step(). Its Error is thrown again with `name` in front, unless it has it already.
template <class Step>
auto name_errors(std::string const& name, Step const& step) {
  try {
    return step();
  } catch (Error const& error) {
    if (error.summary().find(name) != std::string::npos) throw;
    throw Error(error.code(), text(name, ": ", error.summary()),
                "replace the file, or remove it from the row", VLR_WHERE);
  }
}

}  // namespace vlrerank
