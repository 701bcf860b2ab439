// comm/communicator.hpp -- the group of processes that train together.
// One interface, three backends: Self (one process), MPI (CPU tensors), NCCL (CUDA tensors).
// Neither mpi.h nor nccl.h is visible here; nothing above this room knows which backend runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace vlrerank {

enum class Reduce { sum, mean, max, min };

/// A collective that has been enqueued but need not have finished.
/// wait() orders the caller's current stream after it; the host does not block on CUDA.
class Pending {
 public:
  Pending() = default;  // already complete
  explicit Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
  void wait() {
    if (auto finish = std::exchange(wait_, nullptr)) finish();
  }

 private:
  std::function<void()> wait_;
};

/// A fixed group of ranks. Every member must call the same collectives in the same order.
///
/// Tensors must be contiguous and live on device(). Errors throw vlrerank::Error on the
/// rank that saw them; the caller is then expected to leave main, which aborts the others.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }

  virtual at::Device device() const = 0;
  virtual void barrier() = 0;
  /// Copies root's tensor [n] to every rank.
  virtual Pending broadcast(at::Tensor values, int root) = 0;
  /// Reduces values [n] in place on every rank.
  virtual Pending all_reduce(at::Tensor values, Reduce op) = 0;
  /// full [size * n] on every rank -> shard [n]: the reduced part number rank().
  virtual Pending reduce_scatter(at::Tensor shard, at::Tensor full, Reduce op) = 0;
  /// shard [n] of every rank -> full [size * n], in rank order.
  virtual Pending all_gather(at::Tensor full, at::Tensor shard) = 0;
  /// The ranks that passed the same color, ordered by key (compare MPI_Comm_split).
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_;
  int size_;
};

/// The group of one: every collective is the identity. Used without mpirun and in unit tests.
std::unique_ptr<Communicator> make_self_communicator(at::Device device);
/// Collectives on CPU tensors over MPI_COMM_WORLD. Needs a live MpiEnvironment.
std::unique_ptr<Communicator> make_mpi_communicator();

/// Host values, for control: lengths, flags, messages. All are collective over a CPU communicator.
double all_reduce_value(Communicator& comm, double value, Reduce op);
/// Every rank's text, in rank order, on every rank.
std::vector<std::string> all_gather_text(Communicator& comm, std::string_view mine);
/// Root's text on every rank.
std::string broadcast_text(Communicator& comm, std::string_view mine, int root = 0);

/// MPI_Init_thread on construction, MPI_Finalize on destruction; the first object in main.
class MpiEnvironment {
 public:
  MpiEnvironment(int& argc, char**& argv);
  ~MpiEnvironment();
  /// Prints `reason` with this rank and host, then ends every rank with `code`. Others may be
  /// inside a collective, so returning from main (and MPI_Finalize) would hang.
  [[noreturn]] void abort(Exit code, char const* reason);
  /// Rank among those that share this host's memory, and their number.
  std::pair<int, int> local_rank_and_size() const;
  /// What MPI_Get_library_version says, first line.
  static std::string library_version();
  MpiEnvironment(MpiEnvironment const&) = delete;
  MpiEnvironment& operator=(MpiEnvironment const&) = delete;
};

}  // namespace vlrerank
