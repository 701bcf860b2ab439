// app/commands.hpp -- one function a command; each file of app/ holds one of them.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "config/settings.hpp"

namespace vlrerank {

/// What main knows of this process and hands to a command that runs on many ranks.
struct Launch {
  Communicator& control;  ///< all ranks, CPU tensors
  int local_rank = 0;
  int local_size = 1;
};

int run_check(Settings const& settings);
int run_inspect(Settings const& settings);
int run_new_model(Settings const& settings);
int run_prepare(Settings const& settings, Communicator& control);
int run_train(Settings const& settings, Launch const& launch);
int run_eval(Settings const& settings, Launch const& launch);
int run_score(Settings const& settings, Launch const& launch);

/// Versions of everything that is linked, the CUDA architectures and git's name of the source.
std::string version_text();

}  // namespace vlrerank
