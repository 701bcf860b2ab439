// prepare/request.cpp -- settings become a request.
#include "prepare/prepare.hpp"

namespace vlrerank {

PrepareRequest prepare_request(DataSettings const& data, std::uint64_t seed,
                               Tokenizer const& tokenizer) {
  PrepareRequest request;
  request.name = data.shard_name;
  request.tokenizer = &tokenizer;
  request.encode.max_length = data.max_length;
  request.encode.truncation =
      data.truncation == "script" ? Truncation::script : Truncation::document;
  request.encode.special_strings =
      data.parse_special_tokens ? AddedTokens::parse : AddedTokens::plain;
  if (!data.instruction.empty()) request.encode.instruction = data.instruction;
  request.image.min_tokens = data.image_min_tokens;
  request.image.max_tokens = data.image_max_tokens;
  request.image.exif = data.ignore_exif ? Exif::ignore : Exif::apply;
  request.image.root = data.image_root;
  request.rows.image_root = data.image_root;
  request.rows.image_tag = data.image_tag;
  request.rows.video_tag = data.video_tag;
  request.rows.duplicates = data.keep_duplicates ? Duplicates::keep : Duplicates::drop;
  request.seed = seed;
  request.max_bad_rows = data.max_bad_rows;
  request.strict = data.strict;
  request.shard_bytes = data.shard_mib << 20;
  return request;
}

}  // namespace vlrerank
