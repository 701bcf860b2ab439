// safetensors/collection.cpp -- a model directory: one file, or shards and the index naming them.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {
namespace {

constexpr char const* single_name = "model.safetensors";
constexpr char const* index_name = "model.safetensors.index.json";
constexpr char const* refetch = "copy or download the model directory again";

/// weight_map of the index: tensor name -> file name, a plain name inside the directory.
std::map<std::string, std::string> read_index(std::filesystem::path const& path) {
  std::ifstream in(path);
  VLR_IO(in.good(), text(path.string(), " cannot be read"), "check its permissions");
  auto const index = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  VLR_INPUT(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
            text(path.string(), " is not an index: no weight_map object"), refetch);
  std::map<std::string, std::string> map;
  for (auto const& [tensor, file] : index["weight_map"].items()) {
    VLR_INPUT(file.is_string(), text(path.string(), ": the file of ", tensor, " is not a string"),
              refetch);
    auto const name = file.get<std::string>();
    VLR_INPUT(!name.empty() && std::filesystem::path(name).filename() == name && name != ".." &&
                  name != ".",
              text(path.string(), ": ", tensor, " is said to be in '", name,
                   "', which is not a file of this directory"),
              refetch);
    map.emplace(tensor, name);
  }
  VLR_INPUT(!map.empty(), text(path.string(), " names no tensor"), refetch);
  return map;
}

}  // namespace

TensorFiles TensorFiles::open(std::filesystem::path const& path) {
  namespace fs = std::filesystem;
  TensorFiles all;
  all.path_ = path;
  if (!fs::is_directory(path) || fs::exists(path / single_name)) {
    auto const file = fs::is_directory(path) ? path / single_name : path;
    VLR_INPUT(fs::exists(file), text(file.string(), " does not exist"),
              "give a model directory or a .safetensors file");
    all.files_.push_back(TensorFile::open(file));
    for (auto const& [name, info] : all.files_.front().tensors()) all.owner_.emplace(name, 0);
    return all;
  }
  VLR_INPUT(fs::exists(path / index_name),
            text(path.string(), " holds neither ", single_name, " nor ", index_name),
            "give a directory with safetensors weights (pickle files are not read)");
  auto const map = read_index(path / index_name);
  std::map<std::string, std::size_t> opened;
  for (auto const& [tensor, name] : map) {
    if (opened.count(name) != 0) continue;
    VLR_INPUT(fs::exists(path / name),
              text(path.string(), ": the shard ", name, " is missing, it holds ", tensor), refetch);
    opened.emplace(name, all.files_.size());
    all.files_.push_back(TensorFile::open(path / name));
    for (auto const& [other, info] : all.files_.back().tensors()) {
      auto const [at, is_new] = all.owner_.emplace(other, all.files_.size() - 1);
      VLR_INPUT(is_new,
                text(path.string(), ": the tensor ", other, " is in both ",
                     all.files_[at->second].path().filename().string(), " and ", name),
                refetch);
    }
  }
  for (auto const& [tensor, name] : map) {
    auto const at = all.owner_.find(tensor);
    VLR_INPUT(at != all.owner_.end() && at->second == opened.at(name),
              text(path.string(), ": the index says that ", tensor, " is in ", name,
                   ", but it is not there"),
              refetch);
  }
  return all;
}

std::vector<std::string> TensorFiles::names() const {
  std::vector<std::string> all;
  for (auto const& [name, file] : owner_) all.push_back(name);
  return all;
}

TensorFile const& TensorFiles::file_of(std::string const& name) const {
  auto const found = owner_.find(name);
  VLR_INPUT(found != owner_.end(), text(path_.string(), " has no tensor ", name),
            "list its names with `vlrerank inspect`");
  return files_[found->second];
}

TensorInfo const& TensorFiles::info(std::string const& name) const {
  return file_of(name).tensors().at(name);
}

at::Tensor TensorFiles::get(std::string const& name) const {
  return file_of(name).get(name);
}

}  // namespace vlrerank
