// model/forward_test.cpp -- every intermediate of the 20 reference cases.
// Tolerances are the reference's own: two correct fp32 implementations differ by 1.5e-5 (inside)
// and 3e-6 (logits).
#include <gtest/gtest.h>

#include <filesystem>

#include "model/support.hpp"

using namespace vlrerank;

namespace {

class GoldenCase : public testing::TestWithParam<std::string> {
 protected:
  static Reranker& model() {
    static auto const shared = tiny_model();
    return *shared;
  }
  static TensorFiles file(std::string const& name) {
    return TensorFiles::open(test_data("reference/cases/" + name + ".safetensors"));
  }
};

/// A golden tensor's rows of real tokens, in the packed order.
at::Tensor packed(at::Tensor value, std::string const& name, GoldenBatch const& golden) {
  if (name.rfind("vision.", 0) == 0 || value.dim() < 2) return value;
  bool const heads_first = name == "text.layer0.q_rope" || name == "text.layer0.k_rope";
  if (heads_first) value = value.transpose(1, 2);
  std::vector<at::Tensor> parts;
  for (std::size_t b = 0; b < golden.rows.size(); ++b)
    parts.push_back(value[static_cast<std::int64_t>(b)].index_select(
        0, at::tensor(golden.rows[b].padded, at::kLong)));
  return at::cat(parts);
}

}  // namespace

TEST_P(GoldenCase, AllIntermediatesAgree) {
  auto const stored = file(GetParam());
  auto const golden = read_golden(stored);
  auto const batch = pack_golden(golden, Share::nothing);
  std::map<std::string, at::Tensor> seen;
  ForwardContext context;
  context.tap = [&](std::string_view name, at::Tensor const& value) {
    seen[std::string(name)] = value.detach().clone();
  };

  auto const scores = model().forward(batch, context);

  std::size_t compared = 0;
  for (auto const& name : stored.names()) {
    if (name.rfind("text.", 0) != 0 && name.rfind("vision.", 0) != 0) continue;
    ASSERT_TRUE(seen.count(name)) << name;
    auto const want = packed(stored.get(name), name, golden);
    ASSERT_EQ(seen[name].numel(), want.numel()) << name;
    EXPECT_LE(max_difference(seen[name].view(want.sizes()), want), 1e-4) << name;
    ++compared;
  }
  EXPECT_GE(compared, 9u);
  EXPECT_LE(max_difference(seen["logit_yes"], stored.get("logit_yes")), 2e-5);
  EXPECT_LE(max_difference(seen["logit_no"], stored.get("logit_no")), 2e-5);
  EXPECT_LE(max_difference(scores, stored.get("logit_diff")), 2e-5);
  EXPECT_LE(max_difference(scores.sigmoid(), stored.get("score")), 1e-5);
}

TEST_P(GoldenCase, ScoresAgreeWithTheShortcutsOn) {
  auto const stored = file(GetParam());

  auto const scores = model().forward(pack_golden(read_golden(stored), Share::nothing), {});

  EXPECT_LE(max_difference(scores, stored.get("logit_diff")), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Reference, GoldenCase,
                         testing::Values("text_short", "text_long", "text_chinese", "text_unicode",
                                         "text_special_tokens", "null_document",
                                         "custom_instruction", "image_doc", "image_query",
                                         "text_image_doc", "two_images", "image_tiny_min_pixels",
                                         "image_large_max_pixels", "image_wide_grid", "image_modes",
                                         "video_4_frames", "truncated_text", "truncated_image",
                                         "batch3_left", "batch3_right"),
                         [](auto const& given) { return given.param; });

TEST(Reranker, APackedBatchScoresLikeItsRowsOneByOne) {
  auto const model = tiny_model();
  auto const golden =
      read_golden(TensorFiles::open(test_data("reference/cases/batch3_right.safetensors")));
  auto const together = model->forward(pack_golden(golden, Share::nothing), {});

  std::int64_t feature = 0;
  std::int64_t patch = 0;
  std::size_t grid = 0;
  for (std::size_t b = 0; b < golden.rows.size(); ++b) {
    GoldenBatch one;
    one.rows = {golden.rows[b]};
    one.labels = golden.labels.narrow(0, static_cast<std::int64_t>(b), 1);
    std::int64_t features = 0;
    for (auto& source : one.rows[0].source) {
      if (source < 0) continue;
      source -= feature;
      ++features;
    }
    for (std::int64_t taken = 0; taken < features; ++grid) {
      one.grids.push_back(golden.grids[grid]);
      taken += golden.grids[grid].tokens();
    }
    if (features > 0) one.pixels = golden.pixels.narrow(0, patch, features * 4);
    feature += features;
    patch += features * 4;

    auto const alone = model->forward(pack_golden(one, Share::nothing), {});

    EXPECT_LE(max_difference(alone[0], together[static_cast<std::int64_t>(b)]), 2e-6) << b;
  }
}
