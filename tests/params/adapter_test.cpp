// tests/params/adapter_test.cpp -- adapters of PEFT's layout, read, written and refused.
#include "params/adapter.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/reranker.hpp"
#include "safetensors/safetensors.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

fs::path golden(char const* name) {
  return test_data("reference") / "train/lora" / name;
}

ModelConfig tiny() {
  return ModelConfig::load(test_data("reference/tiny-model"));
}

/// A model without weights is enough: an adapter needs names and shapes.
struct Adapted {
  explicit Adapted(AdapterConfig const& config, std::uint64_t seed = 1)
      : model(tiny()), arenas(attach_adapter(model.linears(), config, seed, 256, at::kCPU)) {}
  Reranker model;
  std::vector<Arena> arenas;
};

std::string reason(std::function<void()> const& action) {
  try {
    action();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

void copy_with(fs::path const& from, fs::path const& to,
               std::function<void(NamedTensors&)> const& change) {
  auto const file = TensorFile::open(from / "adapter_model.safetensors");
  NamedTensors tensors;
  for (auto const& [name, info] : file.tensors()) tensors.emplace_back(name, file.get(name));
  change(tensors);
  write_safetensors(to / "adapter_model.safetensors", tensors);
}

TEST(Adapter, ReadsPeftsFilesAndWritesTheSameTensors) {
  auto const config = load_adapter_config(golden("adapter_final"));
  EXPECT_EQ(config.rank, 8);
  EXPECT_EQ(config.alpha, 32);
  EXPECT_EQ(config.scale(), 4);
  Adapted adapted(config);
  TemporaryFolder const folder;

  load_adapter(golden("adapter_final"), adapted.model.linears());
  save_adapter(folder.path(), adapted.model.linears(), config);

  auto const want = TensorFile::open(golden("adapter_final") / "adapter_model.safetensors");
  auto const got = TensorFile::open(folder.path() / "adapter_model.safetensors");
  ASSERT_EQ(got.tensors().size(), want.tensors().size());
  for (auto const& [name, info] : want.tensors())
    EXPECT_TRUE(at::equal(got.get(name), want.get(name))) << name;
  EXPECT_EQ(load_adapter_config(folder.path()).targets.regex, config.targets.regex);
}

TEST(Adapter, StartsAsPeftDoesAndDependsOnSeedAndNameAlone) {
  auto const config = load_adapter_config(golden("adapter_init"));
  Adapted const one(config, 7);
  Adapted const again(config, 7);
  Adapted const other(config, 8);

  for (std::size_t u = 0; u < one.arenas.size(); ++u) {
    EXPECT_TRUE(at::equal(one.arenas[u].values(), again.arenas[u].values()));
    EXPECT_FALSE(at::equal(one.arenas[u].values(), other.arenas[u].values()));
  }
  for (auto const* linear : one.model.linears()) {
    if (!linear->lora) continue;
    EXPECT_EQ(linear->lora->b.abs().max().item<float>(), 0);
    double const bound = 1 / std::sqrt(static_cast<double>(linear->in));
    EXPECT_LE(linear->lora->a.abs().max().item<double>(), bound);
    EXPECT_NEAR(linear->lora->a.std().item<double>(), bound / std::sqrt(3.0), 0.15 * bound);
  }
}

TEST(Adapter, EveryKeyMustBelongToAModuleAndEveryModuleMustHaveItsKeys) {
  auto const config = load_adapter_config(golden("adapter_final"));
  Adapted adapted(config);
  auto load_changed = [&](std::function<void(NamedTensors&)> const& change) {
    TemporaryFolder const folder;
    copy_with(golden("adapter_final"), folder.path(), change);
    return reason([&] { load_adapter(folder.path(), adapted.model.linears()); });
  };

  EXPECT_NE(
      load_changed([](NamedTensors& t) { t.erase(t.begin()); }).find("lacks base_model.model."),
      std::string::npos);
  EXPECT_NE(load_changed([](NamedTensors& t) {
              t.emplace_back("base_model.model.extra.lora_A.weight", at::ones({2, 2}));
            }).find("extra.lora_A"),
            std::string::npos);
  EXPECT_NE(load_changed([](NamedTensors& t) {
              for (auto& [name, value] : t)
                name = name.substr(std::string("base_model.model.").size());
            }).find("more"),
            std::string::npos);
  EXPECT_NE(load_changed([](NamedTensors& t) { t[0].second = at::zeros({0}); }).find("empty"),
            std::string::npos);
  EXPECT_NE(load_changed([](NamedTensors& t) {
              t[0].second = at::ones({3, 3});
            }).find("[3, 3]"),
            std::string::npos);
}

TEST(Adapter, FeaturesThatAreNotComputedAreRefusedByName) {
  std::ifstream stream(golden("adapter_final") / "adapter_config.json");
  auto const good = nlohmann::json::parse(stream);
  std::vector<std::pair<char const*, nlohmann::json>> const features = {
      {"use_dora", true},
      {"bias", "all"},
      {"modules_to_save", {"norm"}},
      {"rank_pattern", {{"q_proj", 4}}},
      {"peft_type", "ADALORA"},
      {"fan_in_fan_out", true}};
  for (auto const& [name, value] : features) {
    TemporaryFolder const folder;
    auto config = good;
    config[name] = value;
    std::ofstream(folder.path() / "adapter_config.json") << config;

    EXPECT_NE(reason([&] { load_adapter_config(folder.path()); }).find(name), std::string::npos);
  }
}

TEST(Adapter, RsloraScalesByTheRootOfTheRank) {
  AdapterConfig config;
  config.rank = 16;
  config.alpha = 32;
  EXPECT_EQ(config.scale(), 2);
  config.rslora = true;
  EXPECT_EQ(config.scale(), 8);
}

}  // namespace
}  // namespace vlrerank
