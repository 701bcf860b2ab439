// data/row_parts.cpp -- texts with tags become sides; small readers that every row form shares.
#include "data/row_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"

namespace vlrerank::row_parts {
namespace {

enum class Slot { image, video };
/// A text, a place for the next medium of a list, or a medium that stands there already.
using Atom = std::variant<std::string, Slot, ImageSource, VideoSource>;

std::string string_of(json const& value, std::string const& name) {
  if (value.is_null()) reject(name + " is null; write \"\" for an empty text");
  if (!value.is_string()) reject(text(name, " is ", kind_of(value), ", not a text"));
  return value.get<std::string>();
}

/// One of OpenAI's content parts: {"type": "text" | "image" | "image_url" | "video" | ...}.
Atom atom_of_part(json const& part, std::string const& name, Context const& context) {
  if (part.is_string()) return part.get<std::string>();
  if (!part.is_object()) reject(text(name, " is ", kind_of(part), ", not a content part"));
  auto const& type = member(part, "type");
  auto kind = type.is_string() ? type.get<std::string>() : std::string();
  if (kind.empty()) {
    for (auto const* key : {"text", "image", "image_url", "video", "video_url"}) {
      if (has(part, key)) kind = key;
    }
  }
  if (kind == "text" || kind == "input_text")
    return string_of(member(part, "text"), name + ".text");
  bool const image = kind == "image" || kind == "image_url" || kind == "input_image";
  bool const video = kind == "video" || kind == "video_url";
  if (!image && !video) reject(text(name, " has the unknown type \"", kind, "\""));
  auto const keys = image ? std::array{"image", "image_url", "path", "url", "bytes"}
                          : std::array{"video", "video_url", "path", "url", "frames"};
  for (auto const* key : keys) {
    if (!has(part, key)) continue;
    auto const place = name + "." + key;
    if (image && std::string_view(key) == "bytes") return image_of(part, place, context);
    if (image) return image_of(part[key], place, context);
    auto videos = videos_of(part[key], place, context);
    if (videos.size() != 1) reject(place + " is not one video");
    return std::move(videos[0]);
  }
  return image ? Slot::image : Slot::video;
}

/// Cuts the texts among `atoms` at every `tag` and puts a slot there.
std::vector<Atom> cut_at_tags(std::vector<Atom> const& atoms, std::string const& tag, Slot slot) {
  std::vector<Atom> cut;
  for (auto const& atom : atoms) {
    auto const* const words = std::get_if<std::string>(&atom);
    if (words == nullptr) {
      cut.push_back(atom);
      continue;
    }
    std::size_t begin = 0;
    for (auto at = words->find(tag); at != std::string::npos; at = words->find(tag, begin)) {
      cut.emplace_back(words->substr(begin, at - begin));
      cut.emplace_back(slot);
      begin = at + tag.size();
    }
    cut.emplace_back(words->substr(begin));
  }
  return cut;
}

/// Fills the slots of one kind in order; media left over come back, to stand at the start.
template <class Source>
std::vector<Source> fill(std::vector<Atom>& atoms, Slot slot, std::vector<Source>& media,
                         std::string const& name, std::string const& tag) {
  auto const slots = static_cast<std::size_t>(std::count(atoms.begin(), atoms.end(), Atom(slot)));
  auto const* const noun = slot == Slot::image ? "image" : "video";
  if (slots > media.size()) {
    reject(text(name, " has ", slots, " ", tag, slots == 1 ? " tag" : " tags", " for ",
                media.size(), " ", noun, media.size() == 1 ? "" : "s"));
  }
  auto const first = media.size() - slots;  // the media before take no tag
  auto next = first;
  for (auto& atom : atoms) {
    if (atom == Atom(slot)) atom = std::move(media[next++]);
  }
  media.resize(first);
  return std::move(media);
}

void append(Side& side, Part part) {
  auto* const words = std::get_if<std::string>(&part);
  if (words != nullptr) {
    if (words->empty()) return;
    if (!side.empty() && std::holds_alternative<std::string>(side.back())) {
      std::get<std::string>(side.back()) += *words;
      return;
    }
  }
  side.push_back(std::move(part));
}

void warn_of_literal_tags(std::vector<Atom> const& atoms, std::string const& tag,
                          std::string const& name, Context const& context) {
  if (tag.empty()) return;
  for (auto const& atom : atoms) {
    auto const* const words = std::get_if<std::string>(&atom);
    if (words != nullptr && words->find(tag) != std::string::npos) {
      context.warnings.push_back(text(name, " has ", tag, " but no such medium: it stays text"));
      return;
    }
  }
}

/// An object {text, image, video} as in Qwen's script.
Side side_of_object(json const& object, std::string const& name, Context const& context) {
  constexpr std::array kKnown = {"text", "image", "images", "video", "videos", "label", "id"};
  auto const media = media_fields(object, "", context);
  auto const& words = member(object, "text");
  bool const no_text = words.is_null() || (words.is_array() && words.empty());
  Side side;
  for (auto const& video : media.videos) append(side, video);
  for (auto const& image : media.images) append(side, image);
  if (no_text && side.empty()) {
    for (auto const& item : object.items()) {
      if (std::none_of(kKnown.begin(), kKnown.end(),
                       [&](char const* known) { return item.key() == known; }))
        reject(text(name, " has none of text, image, video, but ", item.key()));
    }
    return {std::string("NULL")};
  }
  if (no_text) return side;
  if (!words.is_array()) {
    append(side, string_of(words, name + ".text"));
    return side;
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    append(side, string_of(words[i], text(name, ".text[", i, "]")));
  return side;
}

}  // namespace

void reject(std::string const& reason) {
  throw Error(Exit::input, reason, "correct the row, or remove it from the file", VLR_WHERE);
}

json const& member(json const& object, std::string const& key) {
  static json const none;
  if (!object.is_object()) return none;
  auto const found = object.find(key);
  return found == object.end() ? none : *found;
}

bool has(json const& object, std::string const& key) {
  return !member(object, key).is_null();
}

std::string kind_of(json const& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

Side side_of_content(json const& content, std::string const& name, MediaLists media,
                     Context const& context) {
  std::vector<Atom> atoms;
  if (content.is_array()) {
    for (std::size_t i = 0; i < content.size(); ++i)
      atoms.push_back(atom_of_part(content[i], text(name, "[", i, "]"), context));
  } else {
    atoms.emplace_back(string_of(content, name));
  }
  auto const& image_tag = context.options.image_tag;
  auto const& video_tag = context.options.video_tag;
  if (media.images.empty()) {
    warn_of_literal_tags(atoms, image_tag, name, context);
  } else if (!image_tag.empty()) {
    atoms = cut_at_tags(atoms, image_tag, Slot::image);
  }
  if (media.videos.empty()) {
    warn_of_literal_tags(atoms, video_tag, name, context);
  } else if (!video_tag.empty()) {
    atoms = cut_at_tags(atoms, video_tag, Slot::video);
  }
  auto untagged_images = fill(atoms, Slot::image, media.images, name, image_tag);
  auto untagged_videos = fill(atoms, Slot::video, media.videos, name, video_tag);

  Side side;
  for (auto& video : untagged_videos) append(side, std::move(video));
  for (auto& image : untagged_images) append(side, std::move(image));
  for (auto& atom : atoms) {
    if (auto* const words = std::get_if<std::string>(&atom)) append(side, std::move(*words));
    if (auto* const image = std::get_if<ImageSource>(&atom)) append(side, std::move(*image));
    if (auto* const video = std::get_if<VideoSource>(&atom)) append(side, std::move(*video));
  }
  return side;
}

Side side_of_value(json const& value, std::string const& name, MediaLists media,
                   Context const& context) {
  if (!value.is_object()) return side_of_content(value, name, std::move(media), context);
  if (!media.images.empty() || !media.videos.empty())
    reject(name + " is an object, but the row gives it media in fields of its own too");
  return side_of_object(value, name, context);
}

std::size_t count_tags(json const& content, std::string const& tag) {
  if (!content.is_string() || tag.empty()) return 0;
  auto const& words = content.get_ref<std::string const&>();
  std::size_t count = 0;
  for (auto at = words.find(tag); at != std::string::npos; at = words.find(tag, at + tag.size()))
    ++count;
  return count;
}

std::string instruction_of(json const& row) {
  for (auto const* key : {"instruction", "prompt", "system"}) {
    auto const& value = member(row, key);
    if (value.is_null()) continue;
    auto words = string_of(value, key);
    if (!words.empty()) return words;
  }
  return "";
}

float label_of(json const& value, std::string const& name) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0F : 0.0F;
  if (!value.is_number()) reject(text(name, " is ", kind_of(value), ", not a number in [0, 1]"));
  auto const label = value.get<double>();
  if (!(label >= 0 && label <= 1))
    reject(
        text(name, " is ", label, ", outside [0, 1]; divide graded labels by the highest grade"));
  return static_cast<float>(label);
}

}  // namespace vlrerank::row_parts
