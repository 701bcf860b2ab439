// model/config_test.cpp -- config.json in both layouts, and what is refused.
#include "model/config.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "support/test_data.hpp"

using namespace vlrerank;

namespace {

std::string read(std::string const& name) {
  std::ifstream in(test_data(name));
  std::ostringstream body;
  body << in.rdbuf();
  return body.str();
}

/// The error that a config with one value changed gives; empty if it is accepted.
std::string complaint(std::string const& pointer, nlohmann::json const& value) {
  auto config = nlohmann::json::parse(read("reference/tiny-model/config.json"));
  config[nlohmann::json::json_pointer(pointer)] = value;
  try {
    ModelConfig::parse(config.dump(), "config.json");
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    return error.summary();
  }
  return "";
}

}  // namespace

TEST(ModelConfig, BothLayoutsSayTheSame) {
  auto const published = ModelConfig::load(test_data("reference/tiny-model"));
  auto const newer = ModelConfig::parse(read("reference/tiny-model-config-v5.json"), "v5");

  EXPECT_EQ(published, newer);
  EXPECT_EQ(published.text.hidden_size, 32);
  EXPECT_EQ(published.text.rope_theta, 5e6);
  EXPECT_EQ(published.text.mrope_section, (std::vector<std::int64_t>{24, 20, 20}));
  EXPECT_EQ(published.vision.deepstack_visual_indexes, (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_FALSE(published.tie_word_embeddings);
}

TEST(ModelConfig, IsReadBackAsWritten) {
  auto config = ModelConfig::load(test_data("reference/tiny-model"));
  config.tie_word_embeddings = true;
  config.text.head_dim = 32;
  config.text.mrope_section = mrope_section_for(32);

  EXPECT_EQ(config.text.mrope_section, (std::vector<std::int64_t>{6, 5, 5}));
  EXPECT_EQ(ModelConfig::parse(config.to_json(), "written"), config);
}

TEST(ModelConfig, WritesTheFieldsOfThePublishedFile) {
  auto const published = nlohmann::json::parse(read("reference/tiny-model/config.json"));

  EXPECT_EQ(nlohmann::json::parse(ModelConfig::load(test_data("reference/tiny-model")).to_json()),
            published);
}

TEST(ModelConfig, NamesWhatItRefuses) {
  EXPECT_EQ(complaint("/image_token_id", 151655), "");
  EXPECT_NE(complaint("/text_config/hidden_size", "32").find("text_config.hidden_size is \"32\""),
            std::string::npos);
  EXPECT_NE(complaint("/text_config/hidden_size", nullptr).find("lacks hidden_size"),
            std::string::npos);
  EXPECT_NE(complaint("/text_config/hidden_size", 0).find("hidden_size is 0"), std::string::npos);
  EXPECT_NE(complaint("/text_config/hidden_size", 64).find("out_hidden_size"), std::string::npos);
  EXPECT_NE(complaint("/text_config/num_key_value_heads", 3).find("not a multiple"),
            std::string::npos);
  EXPECT_NE(complaint("/text_config/rope_scaling/rope_type", "yarn").find("yarn"),
            std::string::npos);
  EXPECT_NE(complaint("/text_config/rope_scaling/mrope_section", {24, 20}).find("mrope_section"),
            std::string::npos);
  EXPECT_NE(complaint("/vision_config/deepstack_visual_indexes", {5, 9}).find("below depth 7"),
            std::string::npos);
  EXPECT_NE(complaint("/vision_config/num_position_embeddings", 2300).find("not a square"),
            std::string::npos);
  EXPECT_NE(complaint("/model_type", "qwen2_vl").find("qwen2_vl"), std::string::npos);
  EXPECT_NE(complaint("/text_config", 3).find("text_config is not a JSON object"),
            std::string::npos);
  EXPECT_NE(complaint("/text_config/attention_bias", true).find("attention_bias"),
            std::string::npos);
}

TEST(ModelConfig, RefusesTextThatIsNotJson) {
  EXPECT_THROW(ModelConfig::parse("{\"text_config\": ", "cut"), Error);
  EXPECT_THROW(ModelConfig::parse("[]", "list"), Error);
  EXPECT_THROW(ModelConfig::load("/nowhere"), Error);
}
