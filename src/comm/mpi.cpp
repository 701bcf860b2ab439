// comm/mpi.cpp -- collectives on CPU tensors, and MPI's start and end.
// This is the only file that includes mpi.h.
#include <ATen/ATen.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "comm/communicator.hpp"
#include "core/handle.hpp"

namespace vlrerank {
namespace {

void check_mpi(int status, char const* call, char const* where) {
  if (status == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = "unknown error code";
  int length = 0;
  MPI_Error_string(status, reason, &length);
  throw Error(Exit::lost, text(call, " failed: ", reason),
              "see the first error of the job's ranks; this one is often an echo of it", where);
}
#define VLR_MPI(call) check_mpi((call), #call, VLR_WHERE)

void free_comm(MPI_Comm comm) noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm);
}
using CommHandle = Handle<MPI_Comm, free_comm>;

MPI_Datatype mpi_type(at::Tensor const& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kByte:
      return MPI_UINT8_T;
    default:
      throw Error(Exit::internal, text("MPI cannot reduce tensors of type ", t.scalar_type()),
                  "this is a bug in the caller: convert to float32 first", VLR_WHERE);
  }
}

/// MPI counts are ints: longer tensors travel in pieces, the same ones on every rank.
constexpr std::int64_t longest_piece = std::int64_t{1} << 28;

template <class Call>
void in_pieces(std::int64_t count, Call call) {
  for (std::int64_t at = 0; at < count; at += longest_piece)
    call(at, static_cast<int>(std::min(longest_piece, count - at)));
}

char* at_element(at::Tensor const& t, std::int64_t i) {
  return static_cast<char*>(t.data_ptr()) + i * t.element_size();
}

class MpiCommunicator final : public Communicator {
 public:
  static std::unique_ptr<Communicator> adopt(CommHandle comm) {
    int rank = 0;
    int size = 0;
    VLR_MPI(MPI_Comm_rank(comm.get(), &rank));
    VLR_MPI(MPI_Comm_size(comm.get(), &size));
    return std::unique_ptr<Communicator>(new MpiCommunicator(std::move(comm), rank, size));
  }

  at::Device device() const override { return at::kCPU; }
  void barrier() override { VLR_MPI(MPI_Barrier(comm_.get())); }

  Pending broadcast(at::Tensor values, int root) override {
    check_tensor(values);
    in_pieces(values.numel(), [&](std::int64_t i, int n) {
      VLR_MPI(MPI_Bcast(at_element(values, i), n, mpi_type(values), root, comm_.get()));
    });
    return {};
  }
  Pending all_reduce(at::Tensor values, Reduce op) override {
    check_tensor(values);
    in_pieces(values.numel(), [&](std::int64_t i, int n) {
      VLR_MPI(MPI_Allreduce(MPI_IN_PLACE, at_element(values, i), n, mpi_type(values), mpi_op(op),
                            comm_.get()));
    });
    if (op == Reduce::mean) values.div_(size());
    return {};
  }
  Pending reduce_scatter(at::Tensor shard, at::Tensor full, Reduce op) override {
    check_pair(shard, full);
    // One reduction to each owner, so that the count stays an int for any length.
    std::int64_t const n = shard.numel();
    for (int owner = 0; owner < size(); ++owner)
      in_pieces(n, [&](std::int64_t i, int count) {
        VLR_MPI(MPI_Reduce(at_element(full, owner * n + i), at_element(shard, i), count,
                           mpi_type(full), mpi_op(op), owner, comm_.get()));
      });
    if (op == Reduce::mean) shard.div_(size());
    return {};
  }
  Pending all_gather(at::Tensor full, at::Tensor shard) override {
    check_pair(shard, full);
    std::int64_t const n = shard.numel();
    if (n <= longest_piece / size()) {
      bool const in_place = shard.data_ptr() == at_element(full, rank() * n);
      VLR_MPI(MPI_Allgather(in_place ? MPI_IN_PLACE : shard.data_ptr(), static_cast<int>(n),
                            mpi_type(shard), full.data_ptr(), static_cast<int>(n), mpi_type(full),
                            comm_.get()));
      return {};
    }
    auto mine = full.narrow(0, rank() * n, n);
    if (mine.data_ptr() != shard.data_ptr()) mine.copy_(shard);
    for (int owner = 0; owner < size(); ++owner) broadcast(full.narrow(0, owner * n, n), owner);
    return {};
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    VLR_MPI(MPI_Comm_split(comm_.get(), color, key, &part));
    return adopt(CommHandle(part));
  }

 private:
  MpiCommunicator(CommHandle comm, int rank, int size)
      : Communicator(rank, size), comm_(std::move(comm)) {}

  static MPI_Op mpi_op(Reduce op) {
    if (op == Reduce::max) return MPI_MAX;
    return op == Reduce::min ? MPI_MIN : MPI_SUM;
  }
  static void check_tensor(at::Tensor const& t) {
    VLR_REQUIRE(
        t.is_contiguous() && t.device() == at::kCPU,
        text("an MPI collective got a tensor on ", t.device(), ", contiguous ", t.is_contiguous()),
        "this is a bug in the caller: pass t.contiguous() on the CPU");
  }
  void check_pair(at::Tensor const& shard, at::Tensor const& full) const {
    check_tensor(shard);
    check_tensor(full);
    VLR_REQUIRE(full.numel() == shard.numel() * size() && full.scalar_type() == shard.scalar_type(),
                text("full has ", full.numel(), " ", full.scalar_type(), ", shard ", shard.numel(),
                     " ", shard.scalar_type(), ", ranks ", size()),
                "this is a bug in the caller: pad the flat buffer to a multiple of the ranks");
  }

  CommHandle comm_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  MPI_Comm world = MPI_COMM_NULL;
  VLR_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world));
  return MpiCommunicator::adopt(CommHandle(world));
}

MpiEnvironment::MpiEnvironment(int& argc, char**& argv) {
  int provided = 0;
  VLR_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  VLR_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  VLR_USAGE(provided >= MPI_THREAD_FUNNELED,
            "this MPI allows no threads beside the one that calls it",
            "load an Open MPI built with thread support (ompi_info | grep Thread)");
}

MpiEnvironment::~MpiEnvironment() {
  MPI_Finalize();
}

void MpiEnvironment::abort(Exit code, char const* reason) {
  int rank = -1;
  int length = 0;
  char host[MPI_MAX_PROCESSOR_NAME] = "?";
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_processor_name(host, &length);
  std::fflush(stdout);
  // An error that all ranks meet (a missing model) is told once: the lowest rank prints and ends
  // the others while they wait here. One that a single rank meets is told after this short wait.
  if (rank > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + 10 * std::min(rank, 70)));
  std::fprintf(stderr, "vlrerank: rank %d on %s: %s\n", rank, host, reason);
  std::fflush(stderr);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) {  // nobody waits: leave without MPI_Abort's own page of text
    MPI_Finalize();
    std::_Exit(static_cast<int>(code));
  }
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::abort();  // MPI_Abort is not declared [[noreturn]]
}

std::pair<int, int> MpiEnvironment::local_rank_and_size() const {
  MPI_Comm node = MPI_COMM_NULL;
  VLR_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  CommHandle const owner(node);
  int rank = 0;
  int size = 1;
  VLR_MPI(MPI_Comm_rank(node, &rank));
  VLR_MPI(MPI_Comm_size(node, &size));
  return {rank, size};
}

std::string MpiEnvironment::library_version() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string const all(version, version + length);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace vlrerank
