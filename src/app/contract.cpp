// app/contract.cpp -- vlrerank.json and the options it speaks of.
#include "app/contract.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/environment.hpp"
#include "data/encode.hpp"
#include "io/files.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Adopts `trained` where the option has its default; warns where it was set to something else.
template <class Value>
void adopt(Value& now, Value const& standard, Value const& trained, char const* option,
           Log const& log) {
  if (now == trained) return;
  if (now == standard) {
    now = trained;
    log(text("notice: ", option, " ", trained, ", as in training (vlrerank.json)"));
  } else {
    log(text("warning: ", option, " is ", now, ", but the model was trained with ", trained));
  }
}

}  // namespace

Settings with_contract(Settings settings, Log const& log) {
  auto const& adapter = settings.model.adapter;
  auto const directory =
      adapter.empty() ? find_model(settings.model.model, environment) : fs::path(adapter);
  auto const path = directory / "vlrerank.json";
  if (!fs::exists(path)) return settings;
  auto const contract = json::parse(read_file(path, 1 << 20), nullptr, /*allow_exceptions=*/false);
  DataSettings const standard;
  auto& data = settings.data;
  try {
    auto const& limits = contract.at("limits");
    adopt(data.max_length, standard.max_length, limits.at("max_length").get<std::int32_t>(),
          "--max-length", log);
    adopt(data.truncation, standard.truncation, limits.at("truncation").get<std::string>(),
          "--truncation", log);
    adopt(data.image_min_tokens, standard.image_min_tokens,
          limits.at("image_min_tokens").get<std::int32_t>(), "--image-min-tokens", log);
    adopt(data.image_max_tokens, standard.image_max_tokens,
          limits.at("image_max_tokens").get<std::int32_t>(), "--image-max-tokens", log);
    adopt(data.ignore_exif, standard.ignore_exif, limits.at("exif") == "ignored", "--ignore-exif",
          log);
    auto const& prompt = contract.at("prompt");
    auto const usual = EncodeOptions().instruction;
    if (data.instruction.empty()) data.instruction = usual;
    adopt(data.instruction, usual, prompt.at("instruction").get<std::string>(), "--instruction",
          log);
    adopt(data.parse_special_tokens, standard.parse_special_tokens,
          prompt.at("special_strings") == "parsed", "--parse-special-tokens", log);
  } catch (json::exception const&) {
    throw Error(Exit::input, text(path.string(), " is damaged"),
                "copy the checkpoint again, or remove the file to use the options as given",
                VLR_WHERE);
  }
  return settings;
}

}  // namespace vlrerank
