// params/adapter.cpp -- attaching, initialising, reading and writing LoRA pairs.
#include "params/adapter.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {
namespace {

constexpr std::string_view key_prefix = "base_model.model.";

/// Uniform in [-bound, bound) as a function of (seed, name): the same for any ranks and order.
void fill_uniform(at::Tensor const& values, double bound, std::uint64_t seed,
                  std::string const& name) {
  KeyedRandom random(seed, hash_text(name));
  auto host = at::empty(values.sizes(), at::kFloat);
  auto* out = host.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < host.numel(); ++i)
    out[i] = static_cast<float>((random.uniform() * 2 - 1) * bound);
  values.copy_(host);
}

/// "a, b, c, d, e and 7 more".
std::string first_five(std::vector<std::string> const& names) {
  std::string joined;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, names.size()); ++i)
    joined += (i ? ", " : "") + names[i];
  return names.size() > 5 ? text(joined, " and ", names.size() - 5, " more") : joined;
}

void copy_checked(at::Tensor const& target, at::Tensor const& source, std::string const& key,
                  std::string const& file) {
  VLR_INPUT(source.numel() > 0, text(file, ": ", key, " is empty"),
            "the adapter was saved from a partitioned model without gathering it; save it again");
  VLR_INPUT(source.sizes() == target.sizes(),
            text(file, ": ", key, " has shape ", source.sizes(), ", expected ", target.sizes()),
            "the adapter belongs to another model or another rank");
  target.copy_(source);
}

}  // namespace

double AdapterConfig::scale() const {
  auto const r = static_cast<double>(rank);
  return rslora ? alpha / std::sqrt(r) : alpha / r;
}

std::string adapter_key(std::string const& module, char which) {
  return text(key_prefix, module, ".lora_", which, ".weight");
}

std::int64_t layer_of(std::string const& name) {
  constexpr std::string_view marker = "language_model.layers.";
  auto const at = name.find(marker);
  if (at == std::string::npos) return -1;
  std::int64_t layer = -1;
  std::from_chars(name.data() + at + marker.size(), name.data() + name.size(), layer);
  return layer;
}

RateGroup rate_group_of(std::string const& name) {
  if (name.find("visual.merger") != std::string::npos ||
      name.find("visual.deepstack_merger_list") != std::string::npos)
    return RateGroup::aligner;
  return name.find("model.visual.") != std::string::npos ? RateGroup::vision : RateGroup::base;
}

std::vector<Arena> attach_adapter(std::vector<Linear*> const& linears, AdapterConfig const& config,
                                  std::uint64_t seed, std::int64_t multiple, at::Device device) {
  std::vector<std::string> names;
  for (auto const* linear : linears) names.push_back(linear->name);
  auto const chosen = matching_modules(config.targets, names);
  std::set<std::string> const wanted(chosen.begin(), chosen.end());

  std::map<std::int64_t, std::vector<Slice>> units;  // by layer; -1, the rest, comes first
  std::map<std::string, Linear*> by_name;
  for (auto* linear : linears) {
    if (!wanted.contains(linear->name)) continue;
    by_name[linear->name] = linear;
    auto const rate = rate_group_of(linear->name);
    auto& unit = units[layer_of(linear->name)];
    unit.push_back({adapter_key(linear->name, 'A'), {config.rank, linear->in}, rate});
    unit.push_back({adapter_key(linear->name, 'B'), {linear->out, config.rank}, rate});
  }

  at::NoGradGuard const no_grad;
  std::vector<Arena> arenas;
  arenas.reserve(units.size());
  for (auto& [layer, slices] : units) {
    arenas.emplace_back(std::move(slices), multiple, device);
    auto const& arena = arenas.back();
    for (std::size_t i = 0; i < arena.slices().size(); ++i) {
      auto const& name = arena.slices()[i].name;
      auto const module = name.substr(key_prefix.size(), name.rfind(".lora_") - key_prefix.size());
      auto& linear = *by_name.at(module);
      if (!linear.lora) {
        linear.lora.emplace();
        linear.lora->scale = config.scale();
        linear.lora->dropout = config.dropout;
        linear.lora->module_id = static_cast<std::int64_t>(hash_text(module) >> 1);
      }
      bool const is_a = name.ends_with(".lora_A.weight");
      (is_a ? linear.lora->a : linear.lora->b) = arena.parameter(i);
      if (is_a)
        fill_uniform(arena.parameter(i).detach(), 1 / std::sqrt(static_cast<double>(linear.in)),
                     seed, name);
    }
  }
  return arenas;
}

void load_adapter(std::filesystem::path const& directory, std::vector<Linear*> const& linears) {
  auto const path = directory / "adapter_model.safetensors";
  auto const file = TensorFile::open(path);
  std::set<std::string> unused;
  for (auto const& [name, info] : file.tensors()) unused.insert(name);
  std::vector<std::string> missing;
  at::NoGradGuard const no_grad;
  for (auto* linear : linears) {
    if (!linear->lora) continue;
    for (char const which : {'A', 'B'}) {
      auto const key = adapter_key(linear->name, which);
      if (unused.erase(key) == 0) {
        missing.push_back(key);
        continue;
      }
      auto const& target = which == 'A' ? linear->lora->a : linear->lora->b;
      copy_checked(target.detach(), file.get(key), key, path.string());
    }
  }
  std::vector<std::string> const left(unused.begin(), unused.end());
  VLR_INPUT(
      missing.empty(), text(path.string(), " lacks ", first_five(missing)),
      left.empty()
          ? std::string("the file is incomplete, or target_modules of adapter_config.json differ")
          : text("its keys look like ", left.front(),
                 ": an adapter saved for another model class must be converted"));
  VLR_INPUT(left.empty(), text(path.string(), " holds keys of no module: ", first_five(left)),
            "the adapter belongs to another model, or its adapter_config.json to another adapter");
}

void save_adapter(std::filesystem::path const& directory, std::vector<Linear*> const& linears,
                  AdapterConfig const& config) {
  NamedTensors tensors;
  for (auto const* linear : linears) {
    if (!linear->lora) continue;
    tensors.emplace_back(adapter_key(linear->name, 'A'), linear->lora->a.detach().cpu());
    tensors.emplace_back(adapter_key(linear->name, 'B'), linear->lora->b.detach().cpu());
  }
  write_safetensors(directory / "adapter_model.safetensors", tensors);
  write_adapter_config(directory, config);
}

}  // namespace vlrerank
