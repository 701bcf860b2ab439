// train/signals.cpp -- the handler sets a number and no more.
#include "train/signals.hpp"

#include <array>
#include <csignal>

namespace vlrerank {
namespace {

constexpr std::array watched = {SIGTERM, SIGUSR1, SIGINT};
volatile std::sig_atomic_t received = 0;

extern "C" void note_signal(int signal) {
  received = received + 1;
  if (received < 3) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

StopSignals::StopSignals() {
  received = 0;
  for (int const signal : watched) std::signal(signal, note_signal);
}

StopSignals::~StopSignals() {
  for (int const signal : watched) std::signal(signal, SIG_DFL);
}

int StopSignals::count() {
  return received;
}

}  // namespace vlrerank
