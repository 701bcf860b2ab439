// tests/metrics/tensorboard_sample.cpp -- writes the event files that
// tests/python/test_tensorboard.py reads: `tensorboard_sample DIRECTORY`.
#include <cstdio>

#include "core/error.hpp"
#include "metrics/tensorboard.hpp"

int main(int argc, char** argv) {
  using vlrerank::TensorBoardWriter;
  if (argc != 2) {
    std::fputs("usage: tensorboard_sample DIRECTORY\n", stderr);
    return 2;
  }
  try {
    {
      TensorBoardWriter writer(argv[1]);
      for (int step = 1; step <= 300; ++step) {
        writer.scalar("train/loss", step, 1.0 / step);
        writer.scalar("train/learning_rate", step, 1e-5 * step);
      }
      writer.note("run/first sample", 0, "**query**: どこ? <Document>:\n\n| id | text |");
    }
    TensorBoardWriter resumed(argv[1], 201);
    for (int step = 201; step <= 250; ++step) resumed.scalar("train/loss", step, 2.0);
  } catch (vlrerank::Error const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
