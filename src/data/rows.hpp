// data/rows.hpp -- JSON lines in any of the accepted forms become samples, or a reason why not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample.hpp"

namespace vlrerank {

enum class Duplicates { drop, keep };

struct RowOptions {
  std::string image_root;  ///< relative media paths are resolved here; "": the file's folder
  std::string image_tag = "<image>";  ///< placeholder of a picture inside text
  std::string video_tag = "<video>";
  Duplicates duplicates = Duplicates::drop;  ///< equal documents, positives listed as negatives
  bool labels_required = true;               ///< false: documents without a label get 0 (score)
};

struct ParsedRow {
  Sample sample;
  std::vector<std::string> warnings;
  std::int32_t conflicts = 0;   ///< documents listed as positive and as negative
  std::int32_t duplicates = 0;  ///< further copies of a document with the same label
};

/// Parses one line. Throws Error (exit 3) whose summary() is the reason, without file and line.
ParsedRow parse_row(std::string_view json, std::string const& file, std::int64_t line,
                    RowOptions const& options);

/// Calls `visit(line_number, bytes)` for every non-blank line: BOM skipped, CR before LF removed,
/// only byte 0x0A ends a line, .gz and .zst decompressed on the fly. "-" is standard input.
/// Memory is bounded by the longest line.
void for_each_line(std::string const& path,
                   std::function<void(std::int64_t, std::string_view)> const& visit);

}  // namespace vlrerank
