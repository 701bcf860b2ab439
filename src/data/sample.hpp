// data/sample.hpp -- one row of a data set in its normal form, whatever form the file had.
// Row forms (ms-swift 4 and 3, FlagEmbedding, MTEB, Qwen's script, flat pairs) end here.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "media/source.hpp"

namespace vlrerank {

/// A query or a document: text and media in the order in which the prompt shows them.
/// Without any part, nothing stands there (an empty text is legal); the NULL of Qwen's form is a
/// text part "NULL".
using Part = std::variant<std::string, ImageSource, VideoSource>;
using Side = std::vector<Part>;

struct Document {
  Side content;
  float label = 0;          ///< relevance in [0, 1]
  std::string instruction;  ///< overrides the row's; empty: the row's
};

struct Sample {
  std::string instruction;  ///< empty: the run's --instruction
  Side query;
  std::vector<Document> documents;  ///< the row's order; forms with two lists: positives first
  std::string id;                   ///< the row's own id, may be empty
  std::string file;                 ///< where the row came from
  std::int64_t line = 0;            ///< 1-based line of `file`
  std::string form;  ///< "ms-swift", "ms-swift-3", "flagembedding", "mteb", "qwen", "pair"
};

}  // namespace vlrerank
