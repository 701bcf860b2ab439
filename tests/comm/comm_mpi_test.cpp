// tests/comm/comm_mpi_test.cpp -- the communicator's contract, under mpirun with 1 to 4 ranks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/mpi_main.hpp"

namespace vlrerank {
namespace {

Communicator& world() {
  return test::world();
}

TEST(Communicator, ReduceScatterThenAllGatherEqualsAllReduce) {
  int const n = world().size();
  auto full = at::arange(3 * n, at::kFloat) + world().rank();
  auto want = full.clone();
  world().all_reduce(want, Reduce::mean).wait();

  auto shard = at::empty({3});
  auto got = at::empty({3 * n});
  world().reduce_scatter(shard, full, Reduce::mean).wait();
  world().all_gather(got, shard).wait();

  EXPECT_TRUE(at::allclose(got, want));
}

TEST(Communicator, AllGatherTakesAShardThatLiesInsideTheResult) {
  auto full = at::zeros({2 * world().size()});
  auto mine = full.narrow(0, 2 * world().rank(), 2);
  mine.fill_(world().rank() + 1);

  world().all_gather(full, mine).wait();

  for (int rank = 0; rank < world().size(); ++rank)
    EXPECT_EQ(full[2 * rank].item<float>(), static_cast<float>(rank + 1));
}

TEST(Communicator, BroadcastCopiesTheRootsValues) {
  int const root = world().size() - 1;
  auto values = at::full({5}, world().rank(), at::kLong);

  world().broadcast(values, root).wait();

  EXPECT_EQ(values.sum().item<std::int64_t>(), 5 * root);
}

TEST(Communicator, SplitGroupsRanksByColor) {
  auto half = world().split(world().rank() % 2, world().rank());

  EXPECT_EQ(half->size(), (world().size() + 1 - world().rank() % 2) / 2);
}

TEST(Communicator, RejectsMismatchedSizesWithAdvice) {
  auto shard = at::empty({3});
  auto full = at::empty({3 * world().size() + 1});

  EXPECT_THROW(world().reduce_scatter(shard, full, Reduce::sum), Error);
}

TEST(Communicator, HostValuesAndTextsReachEveryRank) {
  int const last = world().size() - 1;
  std::string const mine(static_cast<std::size_t>(world().rank()), 'x');

  auto const texts = all_gather_text(world(), mine);

  EXPECT_EQ(all_reduce_value(world(), world().rank(), Reduce::max), last);
  EXPECT_EQ(all_reduce_value(world(), world().rank(), Reduce::min), 0);
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world().size()));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) EXPECT_EQ(texts[rank].size(), rank);
  EXPECT_EQ(broadcast_text(world(), mine, last), std::string(static_cast<std::size_t>(last), 'x'));
}

}  // namespace
}  // namespace vlrerank

VLR_MPI_TEST_MAIN()
