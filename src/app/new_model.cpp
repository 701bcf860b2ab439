// app/new_model.cpp -- `vlrerank new-model`: a random model of a given size, for demos and tests.
#include <ATen/ATen.h>

#include <cstdio>
#include <map>

#include "app/commands.hpp"
#include "io/files.hpp"
#include "model/reranker.hpp"
#include "tokenizer/tokenizer.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

struct Size {
  std::int64_t hidden, intermediate, layers, heads, kv_heads, head_dim;
  std::int64_t vision_hidden, vision_intermediate, vision_depth, vision_heads;
};

// "2b" and "8b" are the published models' sizes (docs/design.md).
std::map<std::string, Size> const sizes = {
    {"tiny", {64, 192, 3, 2, 1, 32, 64, 192, 3, 2}},
    {"small", {256, 768, 4, 8, 4, 32, 256, 768, 4, 4}},
    {"2b", {2048, 6144, 28, 16, 8, 128, 1024, 4096, 24, 16}},
    {"8b", {4096, 12288, 36, 32, 8, 128, 1152, 4304, 27, 16}},
};

std::int64_t or_else(std::int32_t given, std::int64_t otherwise) {
  return given > 0 ? given : otherwise;
}

/// Three blocks at a quarter, half and three quarters of the tower, as the published ones have it;
/// a text decoder with fewer layers takes fewer.
std::vector<std::int64_t> deepstack_blocks(std::int64_t depth, std::int64_t layers) {
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 1; i <= std::min<std::int64_t>(3, layers); ++i) {
    auto const block = std::min(depth - 1, i * depth / 4);
    if (blocks.empty() || block > blocks.back()) blocks.push_back(block);
  }
  return blocks;
}

ModelConfig config_of(NewModelSettings const& settings) {
  auto const found = sizes.find(settings.size);
  VLR_USAGE(found != sizes.end(), text("--size ", settings.size, " is unknown"),
            "choose tiny, small, 2b or 8b");
  auto const& size = found->second;
  ModelConfig config;
  auto& t = config.text;
  t.hidden_size = or_else(settings.hidden_size, size.hidden);
  t.intermediate_size = or_else(settings.intermediate_size, size.intermediate);
  t.num_hidden_layers = or_else(settings.num_hidden_layers, size.layers);
  t.num_attention_heads = or_else(settings.num_attention_heads, size.heads);
  t.num_key_value_heads = or_else(settings.num_key_value_heads, size.kv_heads);
  t.head_dim = or_else(settings.head_dim, size.head_dim);
  t.mrope_section = mrope_section_for(t.head_dim);
  t.vocab_size = or_else(settings.vocab_size, t.vocab_size);
  t.initializer_range = settings.initializer_range;
  auto& v = config.vision;
  v.hidden_size = or_else(settings.vision_hidden_size, size.vision_hidden);
  v.intermediate_size = or_else(settings.vision_intermediate_size, size.vision_intermediate);
  v.depth = or_else(settings.vision_depth, size.vision_depth);
  v.num_heads = or_else(settings.vision_num_heads, size.vision_heads);
  v.out_hidden_size = t.hidden_size;
  v.initializer_range = settings.initializer_range;
  v.deepstack_visual_indexes = deepstack_blocks(v.depth, t.num_hidden_layers);
  config.tie_word_embeddings = settings.tie_word_embeddings;
  config.validate("the sizes given");
  return config;
}

constexpr auto preprocessor = R"({
  "size": {"longest_edge": 16777216, "shortest_edge": 65536},
  "patch_size": 16,
  "temporal_patch_size": 2,
  "merge_size": 2,
  "image_mean": [0.5, 0.5, 0.5],
  "image_std": [0.5, 0.5, 0.5],
  "processor_class": "Qwen3VLProcessor",
  "image_processor_type": "Qwen2VLImageProcessorFast"
}
)";

}  // namespace

int run_new_model(Settings const& settings) {
  auto const& given = settings.new_model;
  fs::path const output = given.output;
  std::error_code error;
  VLR_USAGE(!fs::exists(output / "config.json", error) || settings.run.overwrite,
            text("--output ", output.string(), " already holds a model"),
            "choose another folder, or give --overwrite");
  VLR_USAGE(!given.tokenizer.empty(), "new-model needs --tokenizer",
            "give a tokenizer.json, or the folder of a Qwen3-VL model that holds one");
  auto const config = config_of(given);
  auto const tokenizer_file = fs::is_directory(given.tokenizer, error)
                                  ? fs::path(given.tokenizer) / "tokenizer.json"
                                  : fs::path(given.tokenizer);
  auto const tokenizer = Tokenizer::load(tokenizer_file);
  VLR_USAGE(tokenizer.size() <= config.text.vocab_size,
            text("--vocab-size ", config.text.vocab_size, " is less than the tokenizer's ",
                 tokenizer.size(), " ids"),
            "give a larger --vocab-size, or leave it out");

  auto const dtype = settings.model.dtype == "float32" ? at::kFloat : at::kBFloat16;
  Reranker model(config);
  model.randomize(settings.run.seed, given.embedding_range, dtype);
  make_directories(output);
  write_sharded_safetensors(output, model.state());
  write_file(output / "config.json",
             config.to_json(dtype == at::kFloat ? "float32" : "bfloat16") + "\n");
  write_file(output / "preprocessor_config.json", preprocessor);
  write_file(output / "tokenizer.json", read_file(tokenizer_file));
  auto const beside = tokenizer_file.parent_path() / "tokenizer_config.json";
  if (fs::exists(beside, error)) write_file(output / "tokenizer_config.json", read_file(beside));

  std::int64_t numbers = 0;
  std::int64_t embeddings = 0;
  for (auto const& parameter : model.parameters()) {
    numbers += parameter.slot->numel();
    if (parameter.part == ModelPart::embedding || parameter.part == ModelPart::head)
      embeddings += parameter.slot->numel();
  }
  std::printf("%s: %.1f M parameters, %.1f M of them embeddings and head\n", output.c_str(),
              static_cast<double>(numbers) / 1e6, static_cast<double>(embeddings) / 1e6);
  return 0;
}

}  // namespace vlrerank
