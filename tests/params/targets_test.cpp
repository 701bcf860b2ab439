// tests/params/targets_test.cpp -- PEFT's rules for target_modules.
#include "params/targets.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vlrerank {
namespace {

std::vector<std::string> const modules = {
    "model.visual.blocks.0.attn.qkv",
    "model.visual.blocks.0.attn.proj",
    "model.visual.blocks.0.mlp.linear_fc1",
    "model.visual.merger.linear_fc1",
    "model.visual.deepstack_merger_list.1.linear_fc2",
    "model.language_model.layers.0.self_attn.q_proj",
    "model.language_model.layers.0.self_attn.o_proj",
    "model.language_model.layers.1.mlp.up_proj",
};

std::vector<std::string> matching(std::vector<std::string> const& option, Frozen llm = Frozen::no,
                                  Frozen vision = Frozen::yes, Frozen aligner = Frozen::yes) {
  return matching_modules(parse_targets(option, llm, vision, aligner), modules);
}

TEST(Targets, AllLinearMeansTheDecodersLinearsUnlessMoreIsUnfrozen) {
  EXPECT_EQ(matching({"all-linear"}),
            (std::vector<std::string>(modules.begin() + 5, modules.end())));
  EXPECT_EQ(matching({"all-linear"}, Frozen::yes, Frozen::no),
            (std::vector<std::string>(modules.begin(), modules.begin() + 3)));
  EXPECT_EQ(matching({"all-linear"}, Frozen::yes, Frozen::yes, Frozen::no),
            (std::vector<std::string>(modules.begin() + 3, modules.begin() + 5)));
  EXPECT_EQ(matching({"all-linear"}, Frozen::no, Frozen::no, Frozen::no), modules);
}

TEST(Targets, SuffixesMatchWholeModuleNames) {
  EXPECT_EQ(matching({"q_proj", "up_proj"}), (std::vector<std::string>{modules[5], modules[7]}));
  EXPECT_EQ(matching({"proj"}), (std::vector<std::string>{modules[1]}));
  EXPECT_EQ(matching({"self_attn.o_proj"}), (std::vector<std::string>{modules[6]}));
}

TEST(Targets, AnExpressionMustMatchTheWholeName) {
  EXPECT_EQ(matching({R"(model\.language_model(?=\.).*\.(q|up)_proj)"}),
            (std::vector<std::string>{modules[5], modules[7]}));
  EXPECT_THROW(matching({R"(\.(q|up)_proj)"}), Error);
}

TEST(Targets, WhatMatchesNothingIsAUsageErrorThatNamesIt) {
  try {
    matching({"q_proj", "w_proj"});
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(error.summary().find("w_proj"), std::string::npos);
  }
  EXPECT_THROW(matching({"(unclosed"}), Error);
  EXPECT_THROW(parse_targets({"all-linear"}, Frozen::yes, Frozen::yes, Frozen::yes), Error);
}

}  // namespace
}  // namespace vlrerank
