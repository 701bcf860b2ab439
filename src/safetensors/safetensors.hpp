// safetensors/safetensors.hpp -- tensors by name in the safetensors format: read by mmap, written
// atomically. Files come from strangers: every length and offset is checked before it is used.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace vlrerank {

/// What a header says of one tensor. `begin` and `end` are bytes from the start of the data.
struct TensorInfo {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// One open file, mapped read-only. Tensors taken from it keep the mapping alive.
class TensorFile {
 public:
  /// Throws Error (exit 3) naming the file and the reason when anything in the header is wrong:
  /// its length, its JSON, a name twice, an unknown dtype, a size that does not fit the shape,
  /// ranges that overlap or leave a hole, a file longer or shorter than header and data.
  /// Throws Error (exit 74) when the file cannot be opened or mapped.
  static TensorFile open(std::filesystem::path const& path);

  std::map<std::string, TensorInfo> const& tensors() const { return tensors_; }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }
  std::filesystem::path const& path() const { return path_; }
  /// A CPU tensor over the mapping, not a copy: never write to it. (Data that are not aligned to
  /// their dtype are copied.)
  at::Tensor get(std::string const& name) const;

 private:
  class Mapping;
  std::filesystem::path path_;
  std::shared_ptr<Mapping const> mapping_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// The tensors of a model directory: model.safetensors, or the shards that
/// model.safetensors.index.json names. A path to one .safetensors file works too.
class TensorFiles {
 public:
  /// Throws Error (exit 3): nothing there, a shard missing, an index that its shards contradict.
  static TensorFiles open(std::filesystem::path const& path);

  std::vector<std::string> names() const;  ///< sorted
  bool contains(std::string const& name) const { return owner_.count(name) != 0; }
  /// Throws Error (exit 3) when there is no such tensor.
  TensorInfo const& info(std::string const& name) const;
  at::Tensor get(std::string const& name) const;
  std::map<std::string, std::string> const& metadata() const { return files_.front().metadata(); }
  std::filesystem::path const& path() const { return path_; }

 private:
  TensorFile const& file_of(std::string const& name) const;
  std::filesystem::path path_;
  std::vector<TensorFile> files_;
  std::map<std::string, std::size_t> owner_;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes one file, byte for byte as the reference implementation does: widest dtype first, then
/// by name. The file appears by rename when complete, or not at all. Tensors may live on any
/// device and need not be contiguous. Throws Error (exit 74): no space, I/O error.
void write_safetensors(std::filesystem::path const& path, NamedTensors const& tensors,
                       std::map<std::string, std::string> const& metadata = {{"format", "pt"}});

/// Writes model.safetensors, or, above max_shard_bytes, model-0000i-of-0000n.safetensors with
/// their index, in the order given. @return the names of the files written, the index last
std::vector<std::string> write_sharded_safetensors(
    std::filesystem::path const& directory, NamedTensors const& tensors,
    std::uint64_t max_shard_bytes = std::uint64_t{5} << 30,
    std::map<std::string, std::string> const& metadata = {{"format", "pt"}});

/// "F32" for at::kFloat and so on; the reverse returns at::ScalarType::Undefined if unknown.
std::string safetensors_dtype(at::ScalarType dtype);
at::ScalarType dtype_of_safetensors(std::string const& name);
/// A dtype's place in the order of the format: files hold the highest first.
int safetensors_dtype_rank(at::ScalarType dtype);

}  // namespace vlrerank
