// shards/format.cpp -- recipes and manifests as JSON, and the checksums of rows and images.
#include "shards/format.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "io/files.hpp"

namespace vlrerank {
namespace shards {
namespace {

using Json = nlohmann::ordered_json;

class Hasher {
 public:
  Hasher() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void add_bytes(void const* bytes, std::size_t count) {
    XXH3_128bits_update(state_.get(), bytes, count);
  }
  template <class T>
  void add(T value) {
    add_bytes(&value, sizeof value);
  }
  /// Length first, so that two neighbours cannot trade elements.
  template <class Range>
  void add_range(Range const& values) {
    add(static_cast<std::uint64_t>(values.size()));
    add_bytes(values.data(), values.size() * sizeof *values.data());
  }
  ImageHash digest() const {
    auto const hash = XXH3_128bits_digest(state_.get());
    return {hash.low64, hash.high64};
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

// The bindings name every field: one that is added to the struct and forgotten here does not
// compile.
Json encode_json(EncodeOptions const& options) {
  auto const& [max_length, truncation, special_strings, instruction, system] = options;
  return {{"max_length", max_length},
          {"truncation", truncation == Truncation::script ? "script" : "document"},
          {"special_strings", special_strings == AddedTokens::parse ? "parse" : "plain"},
          {"instruction", instruction},
          {"system", system}};
}

Json image_json(ImageOptions const& options) {
  auto const& [min_tokens, max_tokens, exif, max_pixels, root] = options;
  return {{"min_tokens", min_tokens},
          {"max_tokens", max_tokens},
          {"exif", exif == Exif::ignore ? "ignore" : "apply"},
          {"max_pixels", max_pixels},
          {"root", root}};
}

Json video_json(VideoOptions const& options) {
  // Exif, pixel limit and root are those of the pictures.
  [[maybe_unused]] auto const& [fps, list_fps, min_frames, max_frames, total_pixels, exif,
                                max_pixels, root] = options;
  return {{"fps", fps},
          {"list_fps", list_fps},
          {"min_frames", min_frames},
          {"max_frames", max_frames},
          {"total_pixels", total_pixels}};
}

Json recipe_json(ShardRecipe const& recipe) {
  return {{"tokenizer", hex(recipe.tokenizer)},
          {"encode", encode_json(recipe.encode)},
          {"image", image_json(recipe.image)},
          {"video", video_json(recipe.video)}};
}

/// Text of the JSON; bytes that are not UTF-8 (in a path, say) become U+FFFD instead of an error.
std::string dump(Json const& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t parse_hex(std::string const& digits) {
  std::size_t used = 0;
  auto const value = std::stoull(digits, &used, 16);
  if (used != digits.size()) throw std::invalid_argument("not hexadecimal: " + digits);
  return value;
}

template <class Enum>
Enum parse_enum(Json const& json, char const* first, Enum first_value, char const* second,
                Enum second_value) {
  auto const word = json.get<std::string>();
  if (word == first) return first_value;
  if (word == second) return second_value;
  throw std::invalid_argument("unknown value " + word);
}

ShardRecipe parse_recipe(Json const& json) {
  auto const& encode = json.at("encode");
  auto const& image = json.at("image");
  ShardRecipe recipe;
  recipe.tokenizer = parse_hex(json.at("tokenizer").get<std::string>());
  recipe.encode.max_length = encode.at("max_length").get<std::int32_t>();
  recipe.encode.truncation = parse_enum(encode.at("truncation"), "document", Truncation::document,
                                        "script", Truncation::script);
  recipe.encode.special_strings = parse_enum(encode.at("special_strings"), "plain",
                                             AddedTokens::plain, "parse", AddedTokens::parse);
  recipe.encode.instruction = encode.at("instruction").get<std::string>();
  recipe.encode.system = encode.at("system").get<std::string>();
  recipe.image.min_tokens = image.at("min_tokens").get<std::int32_t>();
  recipe.image.max_tokens = image.at("max_tokens").get<std::int32_t>();
  recipe.image.exif = parse_enum(image.at("exif"), "apply", Exif::apply, "ignore", Exif::ignore);
  recipe.image.max_pixels = image.at("max_pixels").get<std::int64_t>();
  recipe.image.root = image.at("root").get<std::string>();
  auto const& video = json.at("video");
  recipe.video.fps = video.at("fps").get<double>();
  recipe.video.list_fps = video.at("list_fps").get<double>();
  recipe.video.min_frames = video.at("min_frames").get<std::int32_t>();
  recipe.video.max_frames = video.at("max_frames").get<std::int32_t>();
  recipe.video.total_pixels = video.at("total_pixels").get<std::int64_t>();
  if (json.contains("sources")) recipe.sources = dump(json.at("sources"));
  return recipe;
}

/// Parses with `read`, and turns what it throws into one Error that names the file.
template <class Read>
auto parse_file(std::string const& json, std::string const& file, Read read) {
  try {
    return read(Json::parse(json));
  } catch (Error const&) {
    throw;
  } catch (std::exception const& error) {
    throw Error(Exit::input, text(file, " is damaged: ", error.what()), remake, VLR_WHERE);
  }
}

Json sources_json(ShardRecipe const& recipe) {
  return recipe.sources.empty() ? Json::array() : Json::parse(recipe.sources);
}

}  // namespace

std::uint64_t hash_bytes(void const* bytes, std::size_t count) {
  return XXH3_64bits(bytes, count);
}

ImageHash hash_image(MediumGrid const& medium, std::vector<std::uint8_t> const& pixels) {
  Hasher hash;
  hash.add(medium.grid.t);
  hash.add(medium.grid.h);
  hash.add(medium.grid.w);
  hash.add(static_cast<std::uint8_t>(medium.video));
  hash.add_range(medium.seconds);
  hash.add_range(pixels);
  return hash.digest();
}

std::uint64_t hash_row(EncodedRow const& row, std::vector<ImageHash> const& images,
                       std::string const& id, std::string const& file) {
  Hasher hash;
  hash.add(row.line);
  hash.add(row.prefix_end);
  hash.add_range(id);
  hash.add_range(file);
  for (auto const& image : images) hash.add_range(image);
  for (auto const& pair : row.pairs) {
    hash.add(pair.label);
    hash.add(pair.cut_tokens);
    hash.add_range(pair.ids);
    hash.add_range(pair.media);
  }
  return hash.digest()[0];
}

std::string options_json(ShardRecipe const& recipe) {
  return dump(recipe_json(recipe));
}

std::string sources_text(ShardRecipe const& recipe) {
  return dump(sources_json(recipe));
}

std::string valid_utf8(std::string const& text) {
  return Json::parse(dump(Json(text))).get<std::string>();
}

std::string shard_file_name(std::string const& name, int number) {
  return fmt::format("{}-{:05}.h5", name, number);
}

Manifest read_manifest(std::filesystem::path const& directory) {
  auto const path = directory / manifest_name;
  VLR_INPUT(std::filesystem::exists(path),
            text(directory.string(), " is not a finished shard set: it has no ", manifest_name),
            remake);
  return parse_file(read_file(path, 1u << 28), path.string(), [&](Json const& json) {
    VLR_INPUT(json.at("format").get<std::string>() == set_format,
              text(path.string(), " is not a manifest of shards"), remake);
    VLR_INPUT(json.at("version").get<std::int64_t>() == format_version,
              text(path.string(), " has format version ", json.at("version").dump(),
                   ", this program reads ", format_version),
              text(remake, ", or use the program that made it"));
    Manifest manifest{json.at("name").get<std::string>(), parse_recipe(json.at("recipe")), {}};
    for (auto const& entry : json.at("shards")) {
      ShardFile shard{entry.at("file").get<std::string>(),
                      entry.at("bytes").get<std::uint64_t>(),
                      parse_hex(entry.at("index_xxh3").get<std::string>()),
                      entry.at("rows").get<std::int64_t>(),
                      entry.at("pairs").get<std::int64_t>(),
                      entry.at("tokens").get<std::int64_t>(),
                      entry.at("images").get<std::int64_t>()};
      VLR_INPUT(std::filesystem::path(shard.file).filename() == shard.file,
                text(path.string(), " names a shard outside its folder: ", shard.file), remake);
      manifest.shards.push_back(std::move(shard));
    }
    return manifest;
  });
}

}  // namespace shards

using namespace shards;

std::int64_t pixel_bytes(MediumGrid const& medium) {
  std::int64_t const frames = medium.video ? 2 * std::int64_t{medium.grid.t} : 1;
  return frames * medium.grid.h * medium.grid.w * (16 * 16 * 3);
}

std::string to_json(ShardRecipe const& recipe) {
  Json json = recipe_json(recipe);
  json["sources"] = sources_json(recipe);
  return dump(json);
}

ShardRecipe recipe_from_json(std::string const& json, std::string const& file) {
  return parse_file(json, file, [](Json const& parsed) { return parse_recipe(parsed); });
}

std::string recipe_difference(ShardRecipe const& has, ShardRecipe const& wanted) {
  auto const left = recipe_json(has).flatten(), right = recipe_json(wanted).flatten();
  std::string difference;
  for (auto const& [key, value] : left.items()) {
    if (key == "/image/root" || key == "/image/max_pixels") continue;  // change no accepted row
    if (value == right.at(key)) continue;
    std::string name = key.substr(1);
    for (auto& letter : name)
      if (letter == '/') letter = '.';
    difference += text(difference.empty() ? "" : "; ", name, " is ", value.dump(), ", wanted ",
                       right.at(key).dump());
  }
  return difference;
}

void write_manifest(std::filesystem::path const& directory, std::string const& name,
                    ShardRecipe const& recipe, std::vector<ShardFile> const& files) {
  Json json = {{"format", set_format}, {"version", format_version}, {"name", name}};
  std::int64_t rows = 0, pairs = 0, tokens = 0;
  Json list = Json::array();
  for (auto const& shard : files) {
    rows += shard.rows;
    pairs += shard.pairs;
    tokens += shard.tokens;
    list.push_back({{"file", shard.file},
                    {"bytes", shard.bytes},
                    {"index_xxh3", hex(shard.index)},
                    {"rows", shard.rows},
                    {"pairs", shard.pairs},
                    {"tokens", shard.tokens},
                    {"images", shard.images}});
  }
  json["rows"] = rows;
  json["pairs"] = pairs;
  json["tokens"] = tokens;
  json["recipe"] = recipe_json(recipe);
  json["recipe"]["sources"] = sources_json(recipe);
  json["shards"] = std::move(list);
  write_file(directory / manifest_name, dump(json, 1) + "\n");
}

}  // namespace vlrerank
