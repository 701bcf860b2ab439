// tests/media/golden_test.cpp -- sizes, resized pixels and patches against the reference's own.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "media/image.hpp"
#include "media/patches.hpp"
#include "support/golden.hpp"
#include "support/test_data.hpp"

namespace vlrerank {
namespace {

constexpr std::int32_t script_tokens = 1800;

std::filesystem::path picture(std::string const& name) {
  return test_data("reference/images/" + name);
}

ImageOptions script_options(std::int32_t max_tokens = script_tokens) {
  ImageOptions options;
  options.max_tokens = max_tokens;
  return options;
}

struct GoldenCase {
  std::string name;
  std::vector<std::string> pictures;  // in the order of resized0, resized1, ...
  std::int32_t max_tokens = script_tokens;
};

class GoldenImages : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenImages, ResizedPixelsGridsAndPatchesAreExact) {
  auto const& [name, pictures, max_tokens] = GetParam();
  Golden const golden(test_data("reference/cases/" + name + ".safetensors"));
  auto const grids = golden["image_grid_thw"].as<std::int64_t>();
  auto const values = golden["pixel_values"].as<float>();

  std::size_t row = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    auto const loaded = load_image({picture(pictures[i]).string(), ""}, script_options(max_tokens));
    auto const& expected = golden["resized" + std::to_string(i)];

    EXPECT_EQ(loaded.resized.size.height, expected.shape[0]);
    EXPECT_EQ(loaded.resized.size.width, expected.shape[1]);
    EXPECT_EQ(loaded.resized.rgb, expected.as<std::uint8_t>()) << pictures[i];
    EXPECT_EQ(loaded.grid, (Grid{1, static_cast<std::int32_t>(grids[3 * i + 1]),
                                 static_cast<std::int32_t>(grids[3 * i + 2])}));
    std::vector<std::uint8_t> patches(std::size_t(loaded.grid.h * loaded.grid.w) * patch_values);
    patchify(loaded.resized.rgb, loaded.grid, patches.data());
    std::size_t wrong = 0;
    for (auto const patch : patches)
      wrong += std::abs(values[row++] - (static_cast<float>(patch) - 127.5f) / 127.5f) > 1e-6f;
    EXPECT_EQ(wrong, 0u) << "values of patches of " << pictures[i];
  }
  EXPECT_EQ(row, values.size());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoldenImages,
    testing::Values(GoldenCase{"image_doc", {"landscape.png"}},
                    GoldenCase{"image_query", {"photo.jpg"}},
                    GoldenCase{"text_image_doc", {"square.png"}},
                    GoldenCase{"two_images", {"portrait.png", "square.png", "landscape.png"}},
                    GoldenCase{"image_tiny_min_pixels", {"tiny.png"}},
                    GoldenCase{"image_large_max_pixels", {"large.png"}, 64},
                    GoldenCase{"image_wide_grid", {"wide.png"}},
                    GoldenCase{"image_modes", {"rgba.png", "gray.png", "palette.png"}},
                    GoldenCase{"truncated_image", {"landscape.png"}}),
    [](auto const& tested) { return tested.param.name; });

TEST(GoldenJpeg, DecodesToTheStoredPixels) {
  auto const jpeg = decode_image(read_file(picture("photo.jpg")), {});
  auto const png = decode_image(read_file(picture("photo.decoded.png")), {});

  EXPECT_EQ(jpeg.size, png.size);
  EXPECT_EQ(jpeg.rgb, png.rgb);
}

/// The result of the rule, or nothing when it is an error.
std::optional<ImageSize> fitted(ImageSize size, nlohmann::json const& preset) {
  try {
    return fit_size(size, preset.at("factor"), preset.at("min_pixels"), preset.at("max_pixels"));
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    return {};
  }
}

TEST(GoldenSizes, EverySizeAndPresetOfTheScriptsRule) {
  auto const table = nlohmann::json::parse(read_file(test_data("reference/resize-cases.json")));
  int checked = 0;

  for (auto const& [name, preset] : table.at("presets").items()) {
    if (preset.at("rule") != "reranker") continue;
    for (auto const& entry : table.at("cases")) {
      ImageSize const size{entry.at("height"), entry.at("width")};
      auto const& expected = entry.at("results").at(name);
      auto const found = fitted(size, preset);
      ++checked;

      bool const error =
          expected.contains("error") || expected.at("height") == 0 || expected.at("width") == 0;
      EXPECT_EQ(!found.has_value(), error) << size.height << "x" << size.width << " " << name;
      if (!found || error) continue;
      EXPECT_EQ(*found, (ImageSize{expected.at("height"), expected.at("width")}));
      EXPECT_EQ(grid_of(*found).tokens(), expected.at("tokens").get<int>());
    }
  }
  EXPECT_GT(checked, 150);
}

}  // namespace
}  // namespace vlrerank
