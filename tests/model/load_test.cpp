// model/load_test.cpp -- filling the model from files, and random models.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.hpp"
#include "model/support.hpp"

using namespace vlrerank;

namespace {

std::filesystem::path scratch(std::string const& name) {
  auto const path =
      std::filesystem::temp_directory_path() / text("vlr-load-", ::getpid(), "-", name);
  std::filesystem::create_directories(path);
  return path;
}

ModelConfig small_config() {
  auto config = tiny_model()->config();
  config.text.vocab_size = 160;
  config.image_token_id = 150;
  config.video_token_id = 151;
  return config;
}

std::string load_complaint(NamedTensors const& tensors) {
  auto const directory = scratch("complaint");
  write_safetensors(directory / "model.safetensors", tensors);
  Reranker model(small_config());
  std::string complaint;
  try {
    model.load(TensorFiles::open(directory), at::kFloat, at::kCPU);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    complaint = error.summary();
  }
  std::filesystem::remove_all(directory);
  return complaint;
}

}  // namespace

TEST(Load, UsesEveryTensorOfTheTinyModel) {
  auto const files = TensorFiles::open(test_data("reference/tiny-model"));
  Reranker model(ModelConfig::load(test_data("reference/tiny-model")));

  EXPECT_TRUE(model.load(files, at::kFloat, at::kCPU).empty());
  EXPECT_EQ(model.parameters().size(), files.names().size());
  EXPECT_EQ(model.linears().size(), 5u * 7 + 7 * 4 + 4 * 2);
}

TEST(Load, KnowsWhichParametersDecay) {
  auto const model = tiny_model();
  for (auto const& p : model->parameters()) {
    bool const plain = p.name.find("norm") != std::string::npos || p.name.ends_with(".bias");
    EXPECT_EQ(p.decay, !plain) << p.name;
    EXPECT_EQ(p.part == ModelPart::vision || p.part == ModelPart::aligner,
              p.name.rfind("model.visual.", 0) == 0)
        << p.name;
    EXPECT_EQ(p.part == ModelPart::aligner, p.name.find("merger") != std::string::npos) << p.name;
  }
}

TEST(Load, NamesMissingAndMisshapenTensors) {
  Reranker model(small_config());
  model.randomize(1, 0.5, at::kFloat);
  auto const all = model.state();
  auto cut = all;
  cut.erase(cut.begin() + 2, cut.begin() + 9);
  auto bent = all;
  bent[1].second = at::zeros({31});
  auto const missing = load_complaint(cut);

  EXPECT_EQ(load_complaint(all), "");
  EXPECT_NE(missing.find("lacks 7 of"), std::string::npos) << missing;
  EXPECT_NE(missing.find("q_proj.weight"), std::string::npos) << missing;
  EXPECT_NE(missing.find("and 2 more"), std::string::npos) << missing;
  EXPECT_NE(load_complaint(bent).find("input_layernorm.weight is F32 [31] and should be [32]"),
            std::string::npos);
}

TEST(Load, RandomModelsDependOnTheSeedAlone) {
  Reranker one(small_config()), same(small_config()), other(small_config());
  one.randomize(7, 0.5, at::kFloat);
  same.randomize(7, 0.5, at::kFloat);
  other.randomize(8, 0.5, at::kFloat);

  auto const a = one.state(), b = same.state(), c = other.state();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second));
  EXPECT_FALSE(at::equal(a[0].second, c[0].second));
  EXPECT_NEAR(a[0].second.std().item<double>(), 0.5, 0.02);
  EXPECT_NEAR(a[2].second.std().item<double>(), 0.02, 0.001);
}

TEST(Load, ASavedModelScoresTheSame) {
  auto const directory = scratch("saved");
  auto const model = tiny_model();
  auto const batch = pack_golden(
      read_golden(TensorFiles::open(test_data("reference/cases/image_doc.safetensors"))),
      Share::nothing);
  write_sharded_safetensors(directory, model->state(), 8 << 20);
  Reranker again(model->config());

  again.load(TensorFiles::open(directory), at::kFloat, at::kCPU);
  again.set_answer_ids(yes_id, no_id);

  EXPECT_TRUE(std::filesystem::exists(directory / "model.safetensors.index.json"));
  EXPECT_TRUE(at::equal(again.forward(batch, {}), model->forward(batch, {})));
  std::filesystem::remove_all(directory);
}

TEST(Load, RefusesAnswersOutsideTheVocabulary) {
  Reranker model(small_config());

  EXPECT_THROW(model.set_answer_ids(9693, 2152), Error);
  EXPECT_NO_THROW(model.set_answer_ids(3, 5));
}

TEST(Load, ABfloat16ModelScoresWithinItsPrecision) {
  Reranker model(ModelConfig::load(test_data("reference/tiny-model")));
  model.load(TensorFiles::open(test_data("reference/tiny-model")), at::kBFloat16, at::kCPU);
  model.set_answer_ids(yes_id, no_id);
  auto const stored = TensorFiles::open(test_data("reference/cases/image_doc.safetensors"));

  auto const scores = model.forward(pack_golden(read_golden(stored), Share::nothing), {});

  EXPECT_LE(max_difference(scores, stored.get("logit_diff")), 0.06);
}
