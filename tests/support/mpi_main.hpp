// tests/support/mpi_main.hpp -- main() of a GoogleTest program that runs under mpirun.
// It fails on every rank when a test fails on any.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "comm/communicator.hpp"

namespace vlrerank::test {

inline std::unique_ptr<Communicator>& world_owner() {
  static std::unique_ptr<Communicator> owner;
  return owner;
}

/// All ranks of the test's mpirun.
inline Communicator& world() {
  return *world_owner();
}

inline int run_mpi_tests(int argc, char** argv) {
  MpiEnvironment mpi(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  world_owner() = make_mpi_communicator();
  int const failed = RUN_ALL_TESTS();
  auto const worst = all_reduce_value(world(), failed, Reduce::max);
  world_owner().reset();
  return static_cast<int>(worst);
}

}  // namespace vlrerank::test

#define VLR_MPI_TEST_MAIN()                             \
  int main(int argc, char** argv) {                     \
    return ::vlrerank::test::run_mpi_tests(argc, argv); \
  }
