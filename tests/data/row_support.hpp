// row_support.hpp -- short names for what the tests of rows do all the time.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "data/rows.hpp"

namespace vlrerank {

/// Parses a row as line 1 of /set/rows.jsonl.
inline ParsedRow parse(std::string const& json, RowOptions const& options = {}) {
  return parse_row(json, "/set/rows.jsonl", 1, options);
}

/// Why a row is rejected; fails the test when it is not.
inline std::string reason(std::string const& json, RowOptions const& options = {}) {
  try {
    parse(json, options);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_EQ(error.summary().find('\n'), std::string::npos) << error.summary();
    return error.summary();
  }
  ADD_FAILURE() << "accepted: " << json;
  return "";
}

/// A side as one string: texts as they are, pictures as [path], videos as {path or frames}.
inline std::string shown(Side const& side) {
  std::string out;
  for (auto const& part : side) {
    if (auto const* const text = std::get_if<std::string>(&part)) out += *text;
    if (auto const* const image = std::get_if<ImageSource>(&part))
      out += "[" + (image->path.empty() ? "bytes:" + image->bytes.substr(0, 8) : image->path) + "]";
    if (auto const* const video = std::get_if<VideoSource>(&part)) {
      out += "{" + video->path;
      for (auto const& frame : video->frames) out += frame.path + ";";
      out += "}";
    }
  }
  return out;
}

/// Query and documents with their labels in one line: "query | document=1 | document=0".
inline std::string shown(Sample const& sample) {
  auto out = shown(sample.query);
  for (auto const& document : sample.documents)
    out += " | " + shown(document.content) + "=" + text(document.label);
  return out;
}

/// An ms-swift row with one text query, one positive and one negative, and more fields.
inline std::string swift_row(std::string const& query, std::string const& positive,
                             std::string const& negative, std::string const& more = "") {
  return R"({"messages":[{"role":"user","content":)" + query +
         R"(}],"positive_messages":[[{"role":"assistant","content":)" + positive +
         R"(}]],"negative_messages":[[{"role":"assistant","content":)" + negative + "}]]" +
         (more.empty() ? "" : "," + more) + "}";
}

}  // namespace vlrerank
