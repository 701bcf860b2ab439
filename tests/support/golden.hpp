// support/golden.hpp -- reads a golden safetensors file without LibTorch: names, types, shapes and
// raw bytes. Tests only: the file is trusted.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace vlrerank {

struct GoldenTensor {
  std::string dtype;  ///< "F32", "I64", "U8", ...
  std::vector<std::int64_t> shape;
  std::span<char const> bytes;

  /// The values; T must be what dtype says.
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

inline std::string read_file(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file and its tensors by name; the tensors point into the file's bytes.
class Golden {
 public:
  explicit Golden(std::filesystem::path const& path) : bytes_(read_file(path)) {
    std::uint64_t header = 0;
    std::memcpy(&header, bytes_.data(), sizeof header);
    auto const start = sizeof header + header;
    auto const table = nlohmann::json::parse(bytes_.substr(sizeof header, header));
    for (auto const& [name, entry] : table.items()) {
      if (name == "__metadata__") continue;
      auto const range = entry.at("data_offsets").get<std::vector<std::size_t>>();
      tensors_[name] = {entry.at("dtype"), entry.at("shape"),
                        std::span(bytes_).subspan(start + range[0], range[1] - range[0])};
    }
  }
  Golden(Golden const&) = delete;
  Golden& operator=(Golden const&) = delete;

  bool has(std::string const& name) const { return tensors_.contains(name); }
  GoldenTensor const& operator[](std::string const& name) const { return tensors_.at(name); }

 private:
  std::string bytes_;
  std::map<std::string, GoldenTensor> tensors_;
};

}  // namespace vlrerank
