// encode_support.hpp -- the tokenizer of the tests, and samples encoded with the grids of their
// files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "data/encode.hpp"
#include "data/rows.hpp"
#include "support/test_data.hpp"

namespace vlrerank {

inline nlohmann::json read_json(std::filesystem::path const& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

inline Tokenizer const& qwen() {
  static auto const tokenizer = Tokenizer::load(test_data("qwen3-tokenizer"));
  return tokenizer;
}

inline PromptIds const& prompt_ids() {
  static PromptIds const ids(qwen());
  return ids;
}

/// The grids of a sample's pictures, from their headers.
inline std::vector<MediumGrid> grids_of(Sample const& sample, ImageOptions const& options) {
  std::vector<MediumGrid> grids;
  for (auto const* part : media_of(sample)) {
    auto const& source = std::get<ImageSource>(*part);
    auto const header = read_image_header(read_source(source, options), options);
    grids.push_back({grid_of(target_size(header.size, options)), false, {}});
  }
  return grids;
}

/// Rows of a case's file encoded with the script's picture limits; rejected lines are left out.
inline std::vector<EncodedRow> encode_case(std::string const& file,
                                           EncodeOptions const& options = {}) {
  ImageOptions images;
  images.max_tokens = 1800;
  std::vector<EncodedRow> rows;
  auto const path = test_data("cases/files/" + file).string();
  for_each_line(path, [&](std::int64_t line, std::string_view bytes) {
    try {
      auto const sample = parse_row(bytes, path, line, {}).sample;
      rows.push_back(encode_row(sample, grids_of(sample, images), qwen(), prompt_ids(), options));
    } catch (Error const&) {
    }
  });
  return rows;
}

/// A text-only row encoded.
inline EncodedRow encode_text(std::string const& query, std::vector<std::string> const& documents,
                              EncodeOptions const& options = {}) {
  Sample sample;
  if (!query.empty()) sample.query.emplace_back(query);
  for (auto const& document : documents) {
    sample.documents.push_back({});
    if (!document.empty()) sample.documents.back().content.emplace_back(document);
  }
  return encode_row(sample, {}, qwen(), prompt_ids(), options);
}

}  // namespace vlrerank
