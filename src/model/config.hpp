// model/config.hpp -- the sizes of a Qwen3-VL model, from its config.json in either layout.
// Names and meaning are Hugging Face's. What this program cannot compute is refused at reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vlrerank {

struct TextConfig {
  std::int64_t vocab_size = 151936;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 12288;
  std::int64_t num_hidden_layers = 36;
  std::int64_t num_attention_heads = 32;
  std::int64_t num_key_value_heads = 8;
  std::int64_t head_dim = 128;
  std::int64_t max_position_embeddings = 262144;
  double rms_norm_eps = 1e-6;
  double rope_theta = 5e6;
  std::vector<std::int64_t> mrope_section = {24, 20,
                                             20};  // temporal, height, width; sum head_dim / 2
  double initializer_range = 0.02;
  std::int64_t bos_token_id = 151643;
  std::int64_t eos_token_id = 151645;
  friend bool operator==(TextConfig const&, TextConfig const&) = default;
};

struct VisionConfig {
  std::int64_t depth = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_heads = 16;
  std::int64_t in_channels = 3;
  std::int64_t patch_size = 16;
  std::int64_t temporal_patch_size = 2;
  std::int64_t spatial_merge_size = 2;
  std::int64_t num_position_embeddings = 2304;                       // a square table
  std::int64_t out_hidden_size = 4096;                               // the text model's hidden_size
  std::vector<std::int64_t> deepstack_visual_indexes = {8, 16, 24};  // blocks, ascending
  double rope_theta = 10000;
  double initializer_range = 0.02;
  friend bool operator==(VisionConfig const&, VisionConfig const&) = default;

  std::int64_t head_dim() const { return hidden_size / num_heads; }
  /// Values of one patch: channels x frames x rows x columns.
  std::int64_t patch_values() const {
    return in_channels * temporal_patch_size * patch_size * patch_size;
  }
  std::int64_t merged_size() const { return hidden_size * spatial_merge_size * spatial_merge_size; }
};

struct ModelConfig {
  TextConfig text;
  VisionConfig vision;
  bool tie_word_embeddings = false;
  std::int64_t image_token_id = 151655;
  std::int64_t video_token_id = 151656;
  std::int64_t vision_start_token_id = 151652;
  std::int64_t vision_end_token_id = 151653;
  friend bool operator==(ModelConfig const&, ModelConfig const&) = default;

  /// Reads directory/config.json: rope_theta + rope_scaling (published) or rope_parameters (newer).
  /// Throws Error (exit 3) naming the file, the field and what is wrong with it.
  static ModelConfig load(std::filesystem::path const& directory);
  /// @param where  what messages call the text, such as a path
  static ModelConfig parse(std::string_view json, std::string const& where);
  /// Throws Error (exit 3) when sizes contradict each other.
  void validate(std::string const& where) const;
  /// config.json in the published layout.
  /// @param dtype  of the weights beside it
  std::string to_json(std::string const& dtype = "bfloat16") const;
};

/// The rotary sections of a head in the proportions of the published models: 24 : 20 : 20.
std::vector<std::int64_t> mrope_section_for(std::int64_t head_dim);

}  // namespace vlrerank
