// model/parameters.cpp -- filling the model's slots: from files, or at random.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <set>

#include "core/error.hpp"
#include "model/reranker.hpp"

namespace vlrerank {
namespace {

/// The first five of a list, and how many more there are.
std::string first_five(std::vector<std::string> const& names) {
  std::string all;
  for (std::size_t i = 0; i < names.size() && i < 5; ++i) all += (i ? ", " : "") + names[i];
  return names.size() > 5 ? text(all, " and ", names.size() - 5, " more") : all;
}

bool ends_with(std::string const& name, std::string const& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::vector<std::string> Reranker::load(TensorFiles const& files, at::ScalarType dtype,
                                        at::Device device) {
  std::vector<std::string> missing, misshapen;
  std::set<std::string> known;
  for (auto const& p : parameters()) {
    known.insert(p.name);
    if (!files.contains(p.name)) {
      missing.push_back(p.name);
      continue;
    }
    auto const& info = files.info(p.name);
    if (info.shape != p.shape || !at::isFloatingType(info.dtype))
      misshapen.push_back(text(p.name, " is ", safetensors_dtype(info.dtype), " ",
                               at::IntArrayRef(info.shape), " and should be ",
                               at::IntArrayRef(p.shape)));
  }
  auto const where = files.path().string();
  VLR_INPUT(missing.empty(),
            text(where, " lacks ", missing.size(), " of the model's ", parameters().size(),
                 " tensors: ", first_five(missing)),
            "check that config.json belongs to these weights and that all shards were copied");
  VLR_INPUT(misshapen.empty(), text(where, ": ", first_five(misshapen)),
            "check that config.json belongs to these weights");
  at::NoGradGuard const off;
  for (auto const& p : parameters())
    *p.slot = files.get(p.name).to(at::TensorOptions().dtype(dtype).device(device),
                                   /*non_blocking=*/false, /*copy=*/true);
  std::vector<std::string> unused;
  for (auto const& name : files.names())
    if (known.count(name) == 0) unused.push_back(name);
  return unused;
}

void Reranker::randomize(std::uint64_t seed, double embedding_range, at::ScalarType dtype) {
  at::NoGradGuard const off;
  auto const generator = at::detail::createCPUGenerator(seed);
  for (auto const& p : parameters()) {
    auto value = at::zeros(p.shape);
    if (p.decay) {
      auto const range = p.part == ModelPart::embedding ? embedding_range
                         : p.part == ModelPart::llm || p.part == ModelPart::head
                             ? config_.text.initializer_range
                             : config_.vision.initializer_range;
      value.normal_(0, range, generator);
    } else if (!ends_with(p.name, ".bias")) {
      value.fill_(1);
    }
    *p.slot = value.to(dtype);
  }
}

NamedTensors Reranker::state() const {
  NamedTensors all;
  for (auto const& p : parameters()) all.emplace_back(p.name, *p.slot);
  return all;
}

}  // namespace vlrerank
