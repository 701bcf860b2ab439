// model/config.cpp -- reading, checking and writing config.json.
#include "model/config.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;
constexpr char const* remedy = "use the config.json that was published with the model's weights";

/// One JSON object with its path, for reading checked values by name.
class Reader {
 public:
  Reader(json const& object, std::string where) : object_(object), where_(std::move(where)) {
    VLR_INPUT(object_.is_object(), text(where_, " is not a JSON object"), remedy);
  }

  Reader section(char const* name) const {
    VLR_INPUT(has(name), text(where_, " lacks ", name), remedy);
    return Reader(object_.at(name), where_ + ": " + name);
  }
  bool has(char const* name) const { return object_.contains(name) && !object_.at(name).is_null(); }

  /// A positive count; missing is an error.
  std::int64_t count(char const* name) const {
    VLR_INPUT(has(name), text(where_, " lacks ", name), remedy);
    auto const value = number(name, 0);
    VLR_INPUT(value > 0, text(where_, ".", name, " is ", value, ", not a positive number"), remedy);
    return value;
  }
  std::int64_t number(char const* name, std::int64_t otherwise) const {
    if (!has(name)) return otherwise;
    auto const& value = object_.at(name);
    VLR_INPUT(value.is_number_integer() && std::abs(value.get<double>()) < 1e15,
              text(where_, ".", name, " is ", value.dump(), ", not a whole number"), remedy);
    return value.get<std::int64_t>();
  }
  double real(char const* name, double otherwise) const {
    if (!has(name)) return otherwise;
    auto const& value = object_.at(name);
    VLR_INPUT(value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0,
              text(where_, ".", name, " is ", value.dump(), ", not a positive number"), remedy);
    return value.get<double>();
  }
  bool flag(char const* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    auto const& value = object_.at(name);
    VLR_INPUT(value.is_boolean(),
              text(where_, ".", name, " is ", value.dump(), ", not true or false"), remedy);
    return value.get<bool>();
  }
  std::vector<std::int64_t> numbers(char const* name) const {
    VLR_INPUT(has(name) && object_.at(name).is_array(),
              text(where_, " lacks ", name, ", a list of numbers"), remedy);
    std::vector<std::int64_t> all;
    for (auto const& value : object_.at(name)) {
      VLR_INPUT(value.is_number_integer(),
                text(where_, ".", name, " holds ", value.dump(), ", not a whole number"), remedy);
      all.push_back(value.get<std::int64_t>());
    }
    return all;
  }
  /// Refuses a text field that says anything else than what this program computes.
  void expect(char const* name, std::initializer_list<char const*> known) const {
    if (!has(name)) return;
    auto const& value = object_.at(name);
    std::string list;
    for (auto const* option : known) {
      if (value.is_string() && value.get<std::string>() == option) return;
      list += (list.empty() ? "" : ", ") + std::string(option);
    }
    VLR_INPUT(false, text(where_, ".", name, " is ", value.dump(), "; known: ", list),
              "use a Qwen3-VL model");
  }
  std::string const& where() const { return where_; }

 private:
  json const& object_;
  std::string where_;
};

/// rope_theta + rope_scaling, or both in rope_parameters.
void read_rope(Reader const& from, TextConfig& text_config) {
  bool const newer = from.has("rope_parameters");
  auto const rope = from.section(newer ? "rope_parameters" : "rope_scaling");
  text_config.rope_theta = (newer && rope.has("rope_theta") ? rope : from).real("rope_theta", 5e6);
  rope.expect("rope_type", {"default"});
  rope.expect("type", {"default"});
  VLR_INPUT(rope.flag("mrope_interleaved", true), text(rope.where(), ".mrope_interleaved is false"),
            "use a Qwen3-VL model: its rotary sections are interleaved");
  text_config.mrope_section = rope.numbers("mrope_section");
}

TextConfig read_text(Reader const& from) {
  TextConfig c;
  from.expect("hidden_act", {"silu"});
  VLR_INPUT(!from.flag("attention_bias", false), text(from.where(), ".attention_bias is true"),
            "use a Qwen3-VL model: its decoder has no biases");
  c.vocab_size = from.count("vocab_size");
  c.hidden_size = from.count("hidden_size");
  c.intermediate_size = from.count("intermediate_size");
  c.num_hidden_layers = from.count("num_hidden_layers");
  c.num_attention_heads = from.count("num_attention_heads");
  c.num_key_value_heads = from.number("num_key_value_heads", c.num_attention_heads);
  c.head_dim = from.number("head_dim", 128);
  c.max_position_embeddings = from.number("max_position_embeddings", c.max_position_embeddings);
  c.rms_norm_eps = from.real("rms_norm_eps", c.rms_norm_eps);
  c.initializer_range = from.real("initializer_range", c.initializer_range);
  c.bos_token_id = from.number("bos_token_id", c.bos_token_id);
  c.eos_token_id = from.number("eos_token_id", c.eos_token_id);
  read_rope(from, c);
  return c;
}

VisionConfig read_vision(Reader const& from) {
  VisionConfig c;
  from.expect("hidden_act", {"gelu_pytorch_tanh"});
  c.depth = from.count("depth");
  c.hidden_size = from.count("hidden_size");
  c.intermediate_size = from.count("intermediate_size");
  c.num_heads = from.count("num_heads");
  c.in_channels = from.number("in_channels", c.in_channels);
  c.patch_size = from.number("patch_size", c.patch_size);
  c.temporal_patch_size = from.number("temporal_patch_size", c.temporal_patch_size);
  c.spatial_merge_size = from.number("spatial_merge_size", c.spatial_merge_size);
  c.num_position_embeddings = from.number("num_position_embeddings", c.num_position_embeddings);
  c.out_hidden_size = from.count("out_hidden_size");
  c.deepstack_visual_indexes = from.numbers("deepstack_visual_indexes");
  c.initializer_range = from.real("initializer_range", c.initializer_range);
  if (from.has("rope_parameters"))
    c.rope_theta = from.section("rope_parameters").real("rope_theta", c.rope_theta);
  return c;
}

}  // namespace

ModelConfig ModelConfig::load(std::filesystem::path const& directory) {
  auto const path = directory / "config.json";
  std::ifstream in(path);
  VLR_INPUT(in.good(), vlrerank::text(path.string(), " cannot be read"),
            "give the directory of a model: config.json and safetensors files");
  std::ostringstream body;
  body << in.rdbuf();
  return parse(body.str(), path.string());
}

ModelConfig ModelConfig::parse(std::string_view body, std::string const& where) {
  json root;
  try {
    root = json::parse(body);
  } catch (json::exception const& error) {
    VLR_INPUT(false, vlrerank::text(where, " is not JSON: ", error.what()), remedy);
  }
  Reader const from(root, where);
  from.expect("model_type", {"qwen3_vl"});
  ModelConfig c;
  auto const text_section = from.section("text_config");
  c.text = read_text(text_section);
  c.vision = read_vision(from.section("vision_config"));
  c.tie_word_embeddings =
      from.flag("tie_word_embeddings", text_section.flag("tie_word_embeddings", false));
  c.image_token_id = from.number("image_token_id", c.image_token_id);
  c.video_token_id = from.number("video_token_id", c.video_token_id);
  c.vision_start_token_id = from.number("vision_start_token_id", c.vision_start_token_id);
  c.vision_end_token_id = from.number("vision_end_token_id", c.vision_end_token_id);
  c.validate(where);
  return c;
}

void ModelConfig::validate(std::string const& where) const {
  auto const check = [&](bool holds, std::string const& what) {
    VLR_INPUT(holds, vlrerank::text(where, ": ", what), remedy);
  };
  auto const& t = text;
  auto const& v = vision;
  check(t.num_key_value_heads > 0 && t.num_attention_heads % t.num_key_value_heads == 0,
        vlrerank::text("text_config has ", t.num_attention_heads, " heads, not a multiple of its ",
                       t.num_key_value_heads, " key heads"));
  check(t.head_dim > 0 && t.head_dim % 2 == 0,
        vlrerank::text("text_config.head_dim is ", t.head_dim, ", not a positive even number"));
  std::int64_t sum = 0;
  for (auto const section : t.mrope_section) sum += section > 0 ? section : t.head_dim;
  check(t.mrope_section.size() == 3 && sum == t.head_dim / 2,
        vlrerank::text("mrope_section must hold 3 positive numbers with the sum head_dim / 2 = ",
                       t.head_dim / 2));
  check(v.hidden_size % v.num_heads == 0 && v.head_dim() % 4 == 0,
        vlrerank::text("vision_config.hidden_size ", v.hidden_size, " over ", v.num_heads,
                       " heads does not give heads of a multiple of 4"));
  check(v.out_hidden_size == t.hidden_size,
        vlrerank::text("vision_config.out_hidden_size ", v.out_hidden_size,
                       " is not text_config.hidden_size ", t.hidden_size));
  check(v.in_channels == 3 && v.patch_size == 16 && v.temporal_patch_size == 2 &&
            v.spatial_merge_size == 2,
        "only patches of 2 frames x 16 x 16 RGB pixels, merged 2 x 2, are known");
  auto const side = std::llround(std::sqrt(static_cast<double>(v.num_position_embeddings)));
  check(v.num_position_embeddings > 0 && side * side == v.num_position_embeddings,
        vlrerank::text("vision_config.num_position_embeddings ", v.num_position_embeddings,
                       " is not a square"));
  std::int64_t before = -1;
  for (auto const index : v.deepstack_visual_indexes) {
    check(index > before && index < v.depth,
          vlrerank::text("deepstack_visual_indexes must ascend and stay below depth ", v.depth));
    before = index;
  }
  for (auto const id : {image_token_id, video_token_id})
    check(id >= 0 && id < t.vocab_size,
          vlrerank::text("the media token ", id, " is outside the vocabulary of ", t.vocab_size));
}

std::string ModelConfig::to_json(std::string const& dtype) const {
  nlohmann::ordered_json out;
  out["architectures"] = {"Qwen3VLForConditionalGeneration"};
  out["image_token_id"] = image_token_id;
  out["model_type"] = "qwen3_vl";
  out["text_config"] = {{"attention_bias", false},
                        {"attention_dropout", 0.0},
                        {"bos_token_id", text.bos_token_id},
                        {"dtype", dtype},
                        {"eos_token_id", text.eos_token_id},
                        {"head_dim", text.head_dim},
                        {"hidden_act", "silu"},
                        {"hidden_size", text.hidden_size},
                        {"initializer_range", text.initializer_range},
                        {"intermediate_size", text.intermediate_size},
                        {"max_position_embeddings", text.max_position_embeddings},
                        {"model_type", "qwen3_vl_text"},
                        {"num_attention_heads", text.num_attention_heads},
                        {"num_hidden_layers", text.num_hidden_layers},
                        {"num_key_value_heads", text.num_key_value_heads},
                        {"rms_norm_eps", text.rms_norm_eps},
                        {"rope_scaling",
                         {{"mrope_interleaved", true},
                          {"mrope_section", text.mrope_section},
                          {"rope_type", "default"}}},
                        {"rope_theta", text.rope_theta},
                        {"use_cache", true},
                        {"vocab_size", text.vocab_size}};
  out["tie_word_embeddings"] = tie_word_embeddings;
  out["transformers_version"] = "4.57.0.dev0";
  out["video_token_id"] = video_token_id;
  out["vision_config"] = {{"deepstack_visual_indexes", vision.deepstack_visual_indexes},
                          {"depth", vision.depth},
                          {"hidden_act", "gelu_pytorch_tanh"},
                          {"hidden_size", vision.hidden_size},
                          {"in_channels", vision.in_channels},
                          {"initializer_range", vision.initializer_range},
                          {"intermediate_size", vision.intermediate_size},
                          {"model_type", "qwen3_vl"},
                          {"num_heads", vision.num_heads},
                          {"num_position_embeddings", vision.num_position_embeddings},
                          {"out_hidden_size", vision.out_hidden_size},
                          {"patch_size", vision.patch_size},
                          {"spatial_merge_size", vision.spatial_merge_size},
                          {"temporal_patch_size", vision.temporal_patch_size}};
  out["vision_end_token_id"] = vision_end_token_id;
  out["vision_start_token_id"] = vision_start_token_id;
  return out.dump(2) + "\n";
}

std::vector<std::int64_t> mrope_section_for(std::int64_t head_dim) {
  auto const half = head_dim / 2;
  auto const side = half * 20 / 64;
  return {half - 2 * side, side, side};
}

}  // namespace vlrerank
