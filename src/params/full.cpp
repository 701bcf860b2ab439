// params/full.cpp -- which parts train, and their move into arenas.
#include "params/full.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "core/error.hpp"
#include "params/adapter.hpp"

namespace vlrerank {
namespace {

bool is_trained(ModelPart part, TrainableSettings const& settings) {
  switch (part) {
    case ModelPart::vision:
      return !settings.freeze_vit;
    case ModelPart::aligner:
      return !settings.freeze_aligner;
    case ModelPart::embedding:
      return !settings.freeze_llm && !settings.freeze_embedding;
    default:
      return !settings.freeze_llm;
  }
}

RateGroup rate_of(ModelPart part) {
  if (part == ModelPart::vision) return RateGroup::vision;
  return part == ModelPart::aligner ? RateGroup::aligner : RateGroup::base;
}

}  // namespace

std::vector<Arena> attach_full(std::vector<Parameter> const& parameters,
                               TrainableSettings const& settings, std::int64_t multiple,
                               at::Device device) {
  std::map<std::int64_t, std::vector<Slice>> units;  // by decoder layer; -1, the rest, comes first
  std::map<std::string, Parameter const*> by_name;
  for (auto const& parameter : parameters) {
    if (!is_trained(parameter.part, settings)) continue;
    by_name[parameter.name] = &parameter;
    units[layer_of(parameter.name)].push_back({parameter.name, parameter.shape,
                                               rate_of(parameter.part),
                                               parameter.decay ? Decay::yes : Decay::no});
  }
  VLR_USAGE(!units.empty(), "every part of the model is frozen",
            "give --freeze-llm false, --freeze-vit false or --freeze-aligner false");

  at::NoGradGuard const no_grad;
  std::vector<Arena> arenas;
  arenas.reserve(units.size());
  for (auto& [layer, slices] : units) {
    arenas.emplace_back(std::move(slices), multiple, device);
    auto const& arena = arenas.back();
    for (std::size_t i = 0; i < arena.slices().size(); ++i) {
      auto& slot = *by_name.at(arena.slices()[i].name)->slot;
      arena.parameter(i).detach().copy_(slot);
      slot = arena.parameter(i);
    }
  }
  return arenas;
}

}  // namespace vlrerank
