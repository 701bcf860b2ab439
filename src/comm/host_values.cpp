// comm/host_values.cpp -- numbers and texts of the host, sent as CPU tensors.
#include <ATen/ATen.h>

#include <cstring>

#include "comm/communicator.hpp"

namespace vlrerank {
namespace {

at::Tensor bytes_of(std::string_view text, std::int64_t capacity) {
  auto bytes = at::zeros({capacity}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

}  // namespace

double all_reduce_value(Communicator& comm, double value, Reduce op) {
  auto tensor = at::full({1}, value, at::kDouble);
  comm.all_reduce(tensor, op).wait();
  return tensor.item<double>();
}

std::vector<std::string> all_gather_text(Communicator& comm, std::string_view mine) {
  auto sizes = at::zeros({comm.size()}, at::kLong);
  comm.all_gather(sizes, at::full({1}, static_cast<std::int64_t>(mine.size()), at::kLong)).wait();
  auto const longest = std::max<std::int64_t>(1, sizes.max().item<std::int64_t>());
  auto all = at::zeros({comm.size() * longest}, at::kByte);
  comm.all_gather(all, bytes_of(mine, longest)).wait();
  std::vector<std::string> texts;
  for (int rank = 0; rank < comm.size(); ++rank) {
    auto const* first = all.const_data_ptr<std::uint8_t>() + rank * longest;
    texts.emplace_back(first, first + sizes[rank].item<std::int64_t>());
  }
  return texts;
}

std::string broadcast_text(Communicator& comm, std::string_view mine, int root) {
  auto size = at::full({1}, static_cast<std::int64_t>(mine.size()), at::kLong);
  comm.broadcast(size, root).wait();
  auto const length = size.item<std::int64_t>();
  if (length == 0) return {};
  auto bytes = bytes_of(comm.rank() == root ? mine : std::string_view(), length);
  comm.broadcast(bytes, root).wait();
  auto const* first = bytes.const_data_ptr<std::uint8_t>();
  return std::string(first, first + length);
}

}  // namespace vlrerank
