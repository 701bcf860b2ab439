// tests/metrics/progress_test.cpp -- what a person sees.
#include "metrics/progress.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vlrerank {
namespace {

Progress sample() {
  Progress progress;
  progress.step = 20;
  progress.max_steps = 80;
  progress.loss = 0.53124;
  progress.learning_rate = 4.9e-5;
  progress.grad_norm = 1.234;
  progress.pairs_per_second = 120.4;
  progress.tokens_per_second = 35210;
  progress.seconds_left = 3086;
  return progress;
}

/// What a display writes to its stream.
template <class Use>
std::string written(ProgressStyle style, Use const& use) {
  char* bytes = nullptr;
  std::size_t size = 0;
  auto* stream = open_memstream(&bytes, &size);
  {
    ProgressDisplay display(stream, style, "train", 60, Color::no);
    use(display);
  }
  std::fclose(stream);
  std::string out(bytes, size);
  std::free(bytes);
  return out;
}

TEST(Progress, LineTellsAllThatIsKnown) {
  EXPECT_EQ(
      progress_line(sample()),
      "step 20/80  loss 0.5312  lr 4.9e-05  grad_norm 1.23  120 pairs/s  35.2k tokens/s  left "
      "51m 26s");
  Progress bare;
  bare.max_steps = 3;
  EXPECT_EQ(progress_line(bare), "step 0/3");
}

TEST(Progress, RatesKeepThreeDigits) {
  Progress progress;
  progress.tokens_per_second = 999.6;
  EXPECT_EQ(progress_line(progress), "step 0/0  1k tokens/s");
  progress.tokens_per_second = 2.345e6;
  EXPECT_EQ(progress_line(progress), "step 0/0  2.35M tokens/s");
  progress.tokens_per_second = 0.01234;
  EXPECT_EQ(progress_line(progress), "step 0/0  0.0123 tokens/s");
}

TEST(Progress, BarIsFilledByItsShare) {
  EXPECT_EQ(progress_bar("train", sample(), 45, Color::no),
            "train [=====               ] 20/80  loss 0.53");
  auto done = sample();
  done.step = 200;
  EXPECT_EQ(progress_bar("", done, 23, Color::no), " [====================]");
}

TEST(Progress, ColorAddsNoWidth) {
  auto const plain = progress_bar("train", sample(), 60, Color::no);
  auto colored = progress_bar("train", sample(), 60, Color::yes);

  EXPECT_NE(colored, plain);
  for (std::string const sequence : {"\x1b[32m", "\x1b[0m"})
    colored.erase(colored.find(sequence), sequence.size());
  EXPECT_EQ(colored, plain);
}

TEST(Progress, NarrowTerminalsCutTheLine) {
  for (int columns = 0; columns < 120; ++columns)
    EXPECT_LE(progress_bar("train", sample(), columns, Color::no).size(),
              static_cast<std::size_t>(columns));
}

TEST(ProgressDisplay, WritesPlainLinesWithoutATerminal) {
  auto const out = written(ProgressStyle::lines, [](ProgressDisplay& display) {
    display.show(sample());
    display.message("saved checkpoint-20");
  });

  EXPECT_EQ(out, "train " + progress_line(sample()) + "\nsaved checkpoint-20\n");
}

TEST(ProgressDisplay, KeepsMessagesAboveTheBar) {
  auto const bar = progress_bar("train", sample(), 59, Color::no);
  auto const out = written(ProgressStyle::bar, [](ProgressDisplay& display) {
    display.show(sample());
    display.message("saved");
  });

  EXPECT_EQ(out, "\r\x1b[K" + bar + "\r\x1b[Ksaved\n" + bar + "\n");
}

TEST(ProgressDisplay, SwitchedOffStillTellsMessages) {
  auto const out = written(ProgressStyle::off, [](ProgressDisplay& display) {
    display.show(sample());
    display.message("saved");
  });

  EXPECT_EQ(out, "saved\n");
}

}  // namespace
}  // namespace vlrerank
