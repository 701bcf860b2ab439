// model/backward_test.cpp -- gradients against the reference, and against each other: sharing,
// recomputation and packing change nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/support.hpp"

using namespace vlrerank;

namespace {

/// Reference: 1e-4 relative L2; two correct implementations differ by 1.5e-6.
constexpr double gradient_tolerance = 1e-4;

GoldenBatch train_batch(int number) {
  return read_golden(
      TensorFiles::open(test_data(text("reference/train/batch", number, ".safetensors"))));
}

/// One query of the case against documents made of other cases' endings: rows that share a prefix.
GoldenBatch branching(std::string const& name) {
  auto golden =
      read_golden(TensorFiles::open(test_data("reference/cases/" + name + ".safetensors")));
  auto const first = golden.rows[0];
  for (int copy = 1; copy < 4; ++copy) {
    auto row = first;
    // Another document: the last tokens change, some are added, positions go on.
    auto const length = row.ids.size();
    for (auto t = length - 12; t < length - 5; ++t)
      row.ids[t] = 1000 + 37 * copy + static_cast<int>(t);
    for (int more = 0; more < 3 * copy; ++more) {
      row.ids.push_back(500 + more * copy);
      row.source.push_back(-1);
      for (auto& axis : row.positions) axis.push_back(axis.back() + 1);
    }
    golden.rows.push_back(row);
  }
  auto other = first;  // a second query without branches
  other.query = 1;
  other.ids[3] = 4242;
  golden.rows.push_back(other);
  golden.labels = at::tensor({1.0f, 0.0f, 0.0f, 1.0f, 0.0f});
  return golden;
}

struct Result {
  at::Tensor scores;
  std::map<std::string, at::Tensor> gradients;
};

Result pass(Reranker& model, PackedBatch const& batch, ForwardContext context = {}) {
  clear_gradients(model);
  context.training = true;
  Result result;
  result.scores = model.forward(batch, context);
  model.backward(bce_gradient(result.scores, batch.labels));
  result.gradients = gradients(model);
  return result;
}

void expect_close(Result const& a, Result const& b, double scores, double relative) {
  EXPECT_LE(max_difference(a.scores, b.scores), scores);
  double largest = 0;
  for (auto const& [name, gradient] : b.gradients)
    largest = std::max(largest, gradient.norm().item<double>());
  for (auto const& [name, gradient] : b.gradients)
    EXPECT_LE(relative_l2(a.gradients.at(name), gradient, 1e-4 * largest), relative) << name;
}

void expect_equal(Result const& a, Result const& b) {
  EXPECT_TRUE(at::equal(a.scores, b.scores));
  for (auto const& [name, gradient] : b.gradients)
    EXPECT_TRUE(at::equal(a.gradients.at(name), gradient)) << name;
}

std::vector<ModelPart> const everything = {ModelPart::embedding, ModelPart::llm, ModelPart::head,
                                           ModelPart::vision, ModelPart::aligner};

std::unique_ptr<Reranker> adapted_model(double dropout) {
  auto model = tiny_model();
  attach_adapter(
      *model,
      TensorFiles::open(test_data("reference/train/lora/adapter_init/adapter_model.safetensors")),
      4.0, dropout);
  return model;
}

nlohmann::json read_json(std::string const& name) {
  std::ifstream in(test_data(name));
  return nlohmann::json::parse(in);
}

}  // namespace

TEST(Backward, AdapterGradientsAgreeWithTheReference) {
  auto const model = adapted_model(0);
  auto const want = TensorFiles::open(test_data("reference/train/lora/grads_init.safetensors"));
  auto const log = read_json("reference/train/lora/log.json");
  for (int number = 0; number < 2; ++number) {
    auto const result = pass(*model, pack_golden(train_batch(number), Share::nothing));

    auto const& logits = log["at_initial_adapter"]["pointwise"][number]["logit_diff"];
    for (std::size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR(result.scores[static_cast<std::int64_t>(i)].item<double>(),
                  logits[i].get<double>(), 2e-5);
    EXPECT_EQ(result.gradients.size(), 70u);
    for (auto const& [name, gradient] : result.gradients)
      EXPECT_LE(relative_l2(gradient,
                            want.get(text("batch", number, ".base_model.model.", name, ".weight"))),
                gradient_tolerance)
          << name;
  }
}

TEST(Backward, FullGradientsAgreeWithTheReference) {
  auto const model = tiny_model();
  make_trainable(*model, everything);
  auto const want = TensorFiles::open(test_data("reference/train/full/grads_step0.safetensors"));

  auto const result = pass(*model, pack_golden(train_batch(0), Share::nothing));

  double largest = 0;
  for (auto const& [name, gradient] : result.gradients)
    largest = std::max(largest, gradient.norm().item<double>());
  for (auto const& [name, gradient] : result.gradients) {
    auto expected = at::zeros_like(gradient);
    if (want.contains(name + ".rows"))
      expected.index_copy_(0, want.get(name + ".rows"), want.get(name + ".row_grads"));
    else
      expected = want.get(name);
    EXPECT_LE(relative_l2(gradient, expected, 1e-4 * largest), gradient_tolerance) << name;
  }
}

TEST(Backward, FrozenVisionLeavesTheRestUnchanged) {
  auto const model = tiny_model();
  make_trainable(*model, {ModelPart::embedding, ModelPart::llm, ModelPart::head});
  auto const norms = read_json("reference/train/full/log_llm_only.json")["grad_norms_step0"];

  auto const result = pass(*model, pack_golden(train_batch(0), Share::nothing));

  EXPECT_EQ(result.gradients.size(), norms.size());
  for (auto const& [name, gradient] : result.gradients)
    EXPECT_NEAR(gradient.norm().item<double>() / norms[name].get<double>(), 1, gradient_tolerance)
        << name;
}

TEST(Backward, TheAlignerTrainsAlone) {
  auto const whole = tiny_model();
  make_trainable(*whole, everything);
  auto const want = pass(*whole, pack_golden(train_batch(0), Share::nothing));
  auto const model = tiny_model();
  make_trainable(*model, {ModelPart::aligner});

  auto const result = pass(*model, pack_golden(train_batch(0), Share::nothing));

  EXPECT_EQ(result.gradients.size(), 24u);
  for (auto const& [name, gradient] : result.gradients)
    EXPECT_LE(relative_l2(gradient, want.gradients.at(name)), 1e-5) << name;
}

TEST(Backward, TheShortLastLayerIsExact) {
  auto const model = tiny_model();
  make_trainable(*model, everything);
  auto const batch = pack_golden(branching("image_query"), Share::prefix);
  ForwardContext full;
  full.tap = [](std::string_view, at::Tensor const&) {};

  expect_close(pass(*model, batch), pass(*model, batch, full), 2e-6, 1e-5);
}

TEST(Backward, SharedPrefixesChangeNothing) {
  for (std::string const name : {"text_long", "image_query", "two_images"}) {
    auto const golden = branching(name);
    auto const plain = pack_golden(golden, Share::nothing);
    auto const shared = pack_golden(golden, Share::prefix);
    ASSERT_LT(shared.tokens(), plain.tokens());
    auto const model = tiny_model();
    make_trainable(*model, everything);
    expect_close(pass(*model, shared), pass(*model, plain), 2e-6, 1e-5);

    auto const adapted = adapted_model(0.1);
    ForwardContext context;
    context.seed = 5;
    context.step = 2;
    expect_close(pass(*adapted, shared, context), pass(*adapted, plain, context), 5e-6, 1e-5);
  }
}

TEST(Backward, IsBitwiseEqualForEveryRecomputeChoice) {
  auto const batch = pack_golden(branching("image_query"), Share::prefix);
  auto const model = adapted_model(0.1);
  auto const whole = tiny_model();
  make_trainable(*whole, everything);
  auto const want = pass(*model, batch);
  auto const want_whole = pass(*whole, batch);
  for (std::int64_t layers = 1; layers <= 7; ++layers) {
    ForwardContext context;
    context.recomputed_layers = layers;
    expect_equal(pass(*model, batch, context), want);
    expect_equal(pass(*whole, batch, context), want_whole);
  }
}

TEST(Backward, AddsToGradientsInPlace) {
  auto const model = tiny_model();
  make_trainable(*model, everything);
  auto const batch = pack_golden(train_batch(0), Share::nothing);
  std::map<std::string, void*> places;
  for (auto const& p : model->parameters()) places[p.name] = p.slot->grad().data_ptr();
  auto const once = pass(*model, batch);
  ForwardContext context;
  context.training = true;

  model->backward(bce_gradient(model->forward(batch, context), batch.labels));

  for (auto const& p : model->parameters()) {
    EXPECT_EQ(p.slot->grad().data_ptr(), places[p.name]) << p.name;
    EXPECT_TRUE(at::allclose(p.slot->grad(), once.gradients.at(p.name) * 2, 1e-4, 1e-7)) << p.name;
  }
}

TEST(Backward, DropoutDependsOnSeedAndStepAndNotOnTheBatch) {
  auto const model = adapted_model(0.3);
  auto const golden = train_batch(1);
  auto const batch = pack_golden(golden, Share::nothing);
  auto reversed = golden;
  std::reverse(reversed.rows.begin(), reversed.rows.end());
  ForwardContext context;
  context.training = true;
  context.seed = 1;
  auto const scores = model->forward(batch, context);

  EXPECT_TRUE(at::equal(model->forward(batch, context), scores));
  EXPECT_LE(max_difference(model->forward(pack_golden(reversed, Share::nothing), context).flip(0),
                           scores),
            5e-6);
  context.step = 1;
  EXPECT_GT(max_difference(model->forward(batch, context), scores), 1e-3);
  EXPECT_GT(max_difference(model->forward(batch, {}), scores), 1e-3);
}

TEST(Backward, VisionAdaptersTrain) {
  auto const model = tiny_model();
  at::manual_seed(3);
  std::int64_t id = 0;
  for (auto* linear : model->linears()) {
    ++id;
    if (linear->name.rfind("model.visual.", 0) != 0) continue;
    LoraPair pair{at::randn({4, linear->in}) / 8, at::randn({linear->out, 4}) / 8, 0.5, 0.1, id};
    pair.a.set_requires_grad(true);
    pair.b.set_requires_grad(true);
    linear->lora = pair;
  }
  auto const golden = branching("image_query");
  auto const shared = pass(*model, pack_golden(golden, Share::prefix));

  expect_close(shared, pass(*model, pack_golden(golden, Share::nothing)), 5e-6, 1e-5);
  for (auto const& [name, gradient] : shared.gradients)
    EXPECT_GT(gradient.norm().item<double>(), 0) << name;
}

TEST(Backward, ATiedHeadAndEmbeddingShareOneGradient) {
  auto config = tiny_model()->config();
  config.tie_word_embeddings = true;
  config.text.vocab_size = 151936;
  auto const files = TensorFiles::open(test_data("reference/tiny-model"));
  Reranker tied(config);
  auto const unused = tied.load(files, at::kFloat, at::kCPU);
  EXPECT_EQ(unused, std::vector<std::string>{"lm_head.weight"});
  tied.set_answer_ids(yes_id, no_id);
  make_trainable(tied, everything);
  auto const separate = tiny_model();
  at::Tensor embedding;
  for (auto const& p : separate->parameters())
    if (p.part == ModelPart::embedding) embedding = *p.slot;
  for (auto const& p : separate->parameters())
    if (p.name == "lm_head.weight") *p.slot = embedding.clone();
  make_trainable(*separate, everything);
  auto const batch = pack_golden(train_batch(1), Share::nothing);

  auto const one = pass(tied, batch), two = pass(*separate, batch);

  auto const name = "model.language_model.embed_tokens.weight";
  EXPECT_TRUE(at::equal(one.scores, two.scores));
  EXPECT_LE(relative_l2(one.gradients.at(name),
                        two.gradients.at(name) + two.gradients.at("lm_head.weight")),
            1e-6);
}

TEST(Backward, VisitsEveryPieceBeforeItRuns) {
  auto const model = adapted_model(0);
  std::vector<std::pair<ModelPart, int>> seen;
  model->set_visitor([&](ModelPart part, int layer) { seen.emplace_back(part, layer); });
  pass(*model, pack_golden(train_batch(1), Share::nothing));

  std::vector<std::pair<ModelPart, int>> const want = {
      {ModelPart::embedding, -1}, {ModelPart::llm, 0}, {ModelPart::llm, 1},   {ModelPart::llm, 2},
      {ModelPart::llm, 3},        {ModelPart::llm, 4}, {ModelPart::head, -1}, {ModelPart::head, -1},
      {ModelPart::llm, 4},        {ModelPart::llm, 3}, {ModelPart::llm, 2},   {ModelPart::llm, 1},
      {ModelPart::llm, 0}};
  EXPECT_EQ(seen, want);
}
