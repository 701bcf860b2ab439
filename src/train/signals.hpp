// train/signals.hpp -- requests from outside to stop: noted at once, obeyed at the next step.
#pragma once

namespace vlrerank {

/// While it lives, SIGTERM, SIGUSR1 and SIGINT set a flag instead of ending the process. The third
/// one ends it at once, with the signal's own code.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals const&) = delete;
  StopSignals& operator=(StopSignals const&) = delete;

  /// How many have come to this process; other ranks may have seen none.
  static int count();
};

}  // namespace vlrerank
