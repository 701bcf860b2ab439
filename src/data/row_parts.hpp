// data/row_parts.hpp -- what the row forms are made of: media fields, texts with tags, sides.
// Internal to the room; parse_row() in rows.hpp is what others call.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/rows.hpp"

namespace vlrerank::row_parts {

using nlohmann::json;

/// What every part of a row needs to know.
struct Context {
  RowOptions const& options;
  std::string folder;  ///< relative media paths start here; empty: the working directory
  std::vector<std::string>& warnings;
};

/// Media that belong to one side, in the row's order.
struct MediaLists {
  std::vector<ImageSource> images;
  std::vector<VideoSource> videos;
};

/// Throws the Error (exit 3) that rejects a row; `reason` is one line without file and line.
[[noreturn]] void reject(std::string const& reason);

/// The member, or null when it is missing: null and missing mean the same in every row form.
json const& member(json const& object, std::string const& key);
/// True when the member is there and not null.
bool has(json const& object, std::string const& key);
/// "a string", "an array", ... for reasons.
std::string kind_of(json const& value);

/// A picture: path, data: URI, raw base64, {"path"}, {"bytes"} or {"url"}.
ImageSource image_of(json const& value, std::string const& name, Context const& context);
/// One picture or a list of them; null and [] are none.
std::vector<ImageSource> images_of(json const& value, std::string const& name,
                                   Context const& context);
/// One video or a list: a file, a list of frames, or {"path"|"frames", "fps"}. A flat list of
/// pictures is one video.
std::vector<VideoSource> videos_of(json const& value, std::string const& name,
                                   Context const& context);

/// Media of the fields prefix + "images", "image", "videos", "video" of a row.
MediaLists media_fields(json const& row, std::string const& prefix, Context const& context);
/// The same where the fields hold one entry a document; `documents` entries come back.
std::vector<MediaLists> media_per_document(json const& row, std::string const& prefix,
                                           std::size_t documents, Context const& context);

/// A text, or a list of OpenAI's content parts, with its media put at the tags; media without a
/// tag go to the start. More tags than media reject the row; tags without any media are text.
Side side_of_content(json const& content, std::string const& name, MediaLists media,
                     Context const& context);
/// A side as the forms with a `query` write it: a text or content parts, or an object {text, image,
/// video} as in Qwen's script (videos, pictures, texts in this order; NULL when it has nothing).
Side side_of_value(json const& value, std::string const& name, MediaLists media,
                   Context const& context);
/// Number of times `tag` stands in a text; 0 for anything else than a string.
std::size_t count_tags(json const& content, std::string const& tag);

/// The fields that carry an instruction: "instruction", "prompt", "system"; "" when none is set.
std::string instruction_of(json const& row);
/// A label in [0, 1]; `name` is its place for the reason.
float label_of(json const& value, std::string const& name);

}  // namespace vlrerank::row_parts
