// safetensors/writer.cpp -- files that appear complete or not at all.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {
namespace {

/// A file under a temporary name. commit() gives it its real one; without it nothing remains.
class Draft {
 public:
  explicit Draft(std::filesystem::path path)
      : path_(std::move(path)), draft_(text(path_.string(), ".", ::getpid(), ".partial")) {
    file_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    VLR_IO(file_ >= 0, text(draft_.string(), " cannot be created: ", std::strerror(errno)),
           "check that the directory exists and may be written");
  }
  Draft(Draft const&) = delete;
  Draft& operator=(Draft const&) = delete;
  ~Draft() {
    if (file_ >= 0) ::close(file_);
    if (!committed_) ::unlink(draft_.c_str());
  }

  void write(void const* data, std::size_t bytes) {
    auto const* at = static_cast<char const*>(data);
    while (bytes > 0) {
      constexpr std::size_t piece = std::size_t{1} << 28;
      auto const done = ::write(file_, at, std::min(bytes, piece));
      if (done < 0 && errno == EINTR) continue;
      VLR_IO(done > 0, text("writing ", path_.string(), " failed: ", std::strerror(errno)), remedy);
      at += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }

  void commit() {
    VLR_IO(::fsync(file_) == 0, text("writing ", path_.string(), " failed: ", std::strerror(errno)),
           remedy);
    int const closed = ::close(file_);
    file_ = -1;
    VLR_IO(closed == 0, text("writing ", path_.string(), " failed: ", std::strerror(errno)),
           remedy);
    VLR_IO(
        ::rename(draft_.c_str(), path_.c_str()) == 0,
        text(draft_.string(), " cannot be renamed to ", path_.string(), ": ", std::strerror(errno)),
        remedy);
    committed_ = true;
  }

 private:
  static constexpr char const* remedy = "free space or quota on that file system, then run again";
  std::filesystem::path path_;
  std::filesystem::path draft_;
  int file_ = -1;
  bool committed_ = false;
};

std::string five_digits(std::size_t number) {
  auto const digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::uint64_t bytes_of(at::Tensor const& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

/// The header's JSON, written by hand because the order of its keys is part of the file.
std::string header_of(NamedTensors const& tensors,
                      std::map<std::string, std::string> const& metadata) {
  using nlohmann::json;
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\":" + json(metadata).dump();
  std::uint64_t offset = 0;
  for (auto const& [name, tensor] : tensors) {
    auto const end = offset + bytes_of(tensor);
    header += text(header.size() > 1 ? "," : "", json(name).dump(), ":{\"dtype\":\"",
                   safetensors_dtype(tensor.scalar_type()),
                   "\",\"shape\":", json(tensor.sizes().vec()).dump(), ",\"data_offsets\":[",
                   offset, ",", end, "]}");
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

void write_safetensors(std::filesystem::path const& path, NamedTensors const& tensors,
                       std::map<std::string, std::string> const& metadata) {
  auto order = tensors;
  std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) {
    auto const left = safetensors_dtype_rank(a.second.scalar_type());
    auto const right = safetensors_dtype_rank(b.second.scalar_type());
    return left != right ? left > right : a.first < b.first;
  });
  for (std::size_t i = 1; i < order.size(); ++i)
    VLR_REQUIRE(order[i - 1].first != order[i].first,
                text("two tensors are called ", order[i].first), "give every tensor its own name");
  auto const header = header_of(order, metadata);
  std::uint64_t const length = header.size();
  unsigned char prefix[8];
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<unsigned char>(length >> (8 * i));
  Draft draft(path);
  draft.write(prefix, sizeof prefix);
  draft.write(header.data(), header.size());
  for (auto const& [name, tensor] : order) {
    auto const plain = tensor.detach().cpu().contiguous();
    draft.write(plain.const_data_ptr(), bytes_of(plain));
  }
  draft.commit();
}

std::vector<std::string> write_sharded_safetensors(
    std::filesystem::path const& directory, NamedTensors const& tensors,
    std::uint64_t max_shard_bytes, std::map<std::string, std::string> const& metadata) {
  std::vector<NamedTensors> shards(1);
  std::uint64_t total = 0;
  std::uint64_t in_shard = 0;
  for (auto const& entry : tensors) {
    auto const bytes = bytes_of(entry.second);
    if (in_shard > 0 && in_shard + bytes > max_shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().push_back(entry);
    in_shard += bytes;
    total += bytes;
  }
  if (shards.size() == 1) {
    write_safetensors(directory / "model.safetensors", tensors, metadata);
    return {"model.safetensors"};
  }
  std::vector<std::string> files;
  nlohmann::json index = {{"metadata", {{"total_size", total}}},
                          {"weight_map", nlohmann::json::object()}};
  for (std::size_t s = 0; s < shards.size(); ++s) {
    files.push_back(
        text("model-", five_digits(s + 1), "-of-", five_digits(shards.size()), ".safetensors"));
    write_safetensors(directory / files.back(), shards[s], metadata);
    for (auto const& [name, tensor] : shards[s]) index["weight_map"][name] = files.back();
  }
  files.push_back("model.safetensors.index.json");
  Draft draft(directory / files.back());
  auto const body = index.dump(2) + "\n";
  draft.write(body.data(), body.size());
  draft.commit();
  return files;
}

}  // namespace vlrerank
