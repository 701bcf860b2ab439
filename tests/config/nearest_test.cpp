// tests/config/nearest_test.cpp -- the name that was meant.
#include "config/nearest.hpp"

#include <gtest/gtest.h>

#include "config/support.hpp"
#include "config/table.hpp"

namespace vlrerank {
namespace {

TEST(Nearest, FindsTheNameWithOneLetterWrong) {
  EXPECT_EQ(nearest("trian", {"check", "train", "eval"}), "train");
  EXPECT_EQ(nearest("lora-ranks", {"lora-rank", "lora-alpha"}), "lora-rank");
  EXPECT_EQ(nearest("learnig-rate", {"lr-power", "learning-rate"}), "learning-rate");
}

TEST(Nearest, TakesUnderlinesForDashes) {
  EXPECT_EQ(nearest("max_lenght", {"max-length", "max-steps"}), "max-length");
}

TEST(Nearest, FindsTheNameThatHasAllWords) {
  EXPECT_EQ(nearest("num-epochs", {"num-hidden-layers", "num-train-epochs"}), "num-train-epochs");
  EXPECT_EQ(nearest("metric", {"model", "metric-for-best-model"}), "metric-for-best-model");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("photosynthesis", {"check", "train", "eval"}), "");
  EXPECT_EQ(nearest("x", {"at"}), "");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Commands, NameTheNearestOfAMistypedOne) {
  auto const message = usage_error([] { find_command("trian"); });

  EXPECT_TRUE(contains(message, "there is no command `trian`")) << message;
  EXPECT_TRUE(contains(message, "vlrerank train")) << message;
}

}  // namespace
}  // namespace vlrerank
