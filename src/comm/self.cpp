// comm/self.cpp -- the communicator of a single process: every collective is the identity.
#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace vlrerank {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(at::Device device) : Communicator(0, 1), device_(device) {}

  at::Device device() const override { return device_; }
  void barrier() override {}
  Pending broadcast(at::Tensor, int) override { return {}; }
  Pending all_reduce(at::Tensor, Reduce) override { return {}; }
  Pending reduce_scatter(at::Tensor shard, at::Tensor full, Reduce) override {
    if (shard.data_ptr() != full.data_ptr()) shard.copy_(full);
    return {};
  }
  Pending all_gather(at::Tensor full, at::Tensor shard) override {
    if (shard.data_ptr() != full.data_ptr()) full.copy_(shard);
    return {};
  }
  std::unique_ptr<Communicator> split(int, int) override { return make_self_communicator(device_); }

 private:
  at::Device device_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(at::Device device) {
  return std::make_unique<SelfCommunicator>(device);
}

}  // namespace vlrerank
