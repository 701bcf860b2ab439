// kernels/attention.cpp -- argument checks and gradient of the attention over runs.
#include "kernels/attention.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.hpp"

namespace vlrerank {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Float32 with the elements of a head together.
at::Tensor plain(at::Tensor const& x) {
  auto const wide = x.to(at::kFloat);
  return wide.stride(2) == 1 ? wide : wide.contiguous();
}

/// The runs outlive the graph as part of it, so a saved copy travels in a custom holder.
struct SavedRuns : torch::CustomClassHolder {
  explicit SavedRuns(AttentionRuns given) : runs(std::move(given)) {}
  AttentionRuns runs;
};

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& q, at::Tensor const& k,
                            at::Tensor const& v, AttentionRuns const& runs, double scale) {
    at::AutoDispatchBelowADInplaceOrView const below;
    auto [out, lse] = cpu::attention_forward(plain(q), plain(k), plain(v), runs, scale);
    out = out.to(q.scalar_type());
    ctx->save_for_backward({q, k, v, out, lse});
    ctx->saved_data["runs"] = at::IValue::make_capsule(c10::make_intrusive<SavedRuns>(runs));
    ctx->saved_data["scale"] = scale;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto const saved = ctx->get_saved_variables();
    auto const holder = ctx->saved_data["runs"].toCapsule();
    auto const& runs = static_cast<SavedRuns const&>(*holder).runs;
    auto [dq, dk, dv] = cpu::attention_backward(
        grads[0].to(at::kFloat).contiguous(), plain(saved[0]), plain(saved[1]), plain(saved[2]),
        saved[3].to(at::kFloat), saved[4], runs, ctx->saved_data["scale"].toDouble());
    return {dq.to(saved[0].scalar_type()),
            dk.to(saved[1].scalar_type()),
            dv.to(saved[2].scalar_type()),
            {},
            {}};
  }
};

}  // namespace

at::Tensor varlen_attention(at::Tensor const& q, at::Tensor const& k, at::Tensor const& v,
                            AttentionRuns const& runs, double scale) {
  VLR_REQUIRE(q.dim() == 3 && k.dim() == 3 && k.sizes() == v.sizes() && q.size(2) == k.size(2) &&
                  k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              text("attention got q ", q.sizes(), ", k ", k.sizes(), ", v ", v.sizes()),
              "pass [Q, Hq, D] and two [N, Hkv, D] with Hq a multiple of Hkv");
  auto const keys = runs.kv_index.defined() ? runs.kv_index.size(0) : k.size(0);
  VLR_REQUIRE(
      !runs.cu_q.empty() && runs.cu_q.size() == runs.cu_k.size() && runs.cu_q.back() == q.size(0) &&
          runs.cu_k.back() == keys,
      text("the runs cover ", runs.cu_q.empty() ? 0 : runs.cu_q.back(), " queries and ",
           runs.cu_k.empty() ? 0 : runs.cu_k.back(), " keys, given are ", q.size(0), " and ", keys),
      "this is a bug in the caller: runs must cover all queries and keys");
  VLR_REQUIRE(q.is_cpu(), text("attention got a tensor on ", q.device().str()),
              "this build computes on the CPU: run with --device cpu");
  return Attention::apply(q, k, v, runs, scale);
}

}  // namespace vlrerank
