// model/linear.cpp -- the products of a linear layer and its adapter.
#include "model/linear.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dropout.hpp"

namespace vlrerank {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// y += scale * (x A^T) B^T in place. With a rank of 8 or so these products are thin: which side
/// is transposed decides whether the BLAS takes 0.5 or 5 ms, so the gradients are written out.
struct AddLowRank : torch::autograd::Function<AddLowRank> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor y, at::Tensor const& x,
                            at::Tensor const& a, at::Tensor const& b, double scale) {
    at::AutoDispatchBelowADInplaceOrView const below;
    auto const low = x.mm(a.t());  // [T, r]
    y.addmm_(low, b.t(), 1, scale);
    ctx->mark_dirty({y});
    ctx->save_for_backward({x, a, b, low});
    ctx->saved_data["scale"] = scale;
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto const saved = ctx->get_saved_variables();
    auto const &x = saved[0], &a = saved[1], &b = saved[2], &low = saved[3];
    auto const scale = ctx->saved_data["scale"].toDouble();
    auto const dlow = b.t().mm(grads[0].t()).mul_(scale);  // [r, T]
    auto const dx = ctx->needs_input_grad(1) ? dlow.t().mm(a) : at::Tensor();
    auto const db = low.t().mm(grads[0]).mul_(scale).t();
    return {grads[0], dx, dlow.mm(x), db, {}};
  }
};

/// Adds scale * B A dropout(x) to y, which nothing else holds yet.
at::Tensor add_adapter(at::Tensor y, LoraPair const& lora, at::Tensor const& x,
                       DropoutState const& dropout) {
  auto in = x.to(lora.a.scalar_type());
  if (dropout.active && lora.dropout > 0)
    in = ops::counter_dropout(in, dropout.token_key,
                              {dropout.seed, dropout.step, lora.module_id, lora.dropout});
  if (y.scalar_type() == in.scalar_type())
    return AddLowRank::apply(y, in, lora.a, lora.b, lora.scale);
  return y.add_(in.matmul(lora.a.t()).matmul(lora.b.t()).to(y.scalar_type()), lora.scale);
}

}  // namespace

at::Tensor apply(Linear const& linear, at::Tensor const& x, DropoutState const& dropout) {
  auto y = linear.bias.defined() ? at::addmm(linear.bias, x, linear.weight.t())
                                 : at::mm(x, linear.weight.t());
  return linear.lora ? add_adapter(std::move(y), *linear.lora, x, dropout) : y;
}

at::Tensor add_apply(at::Tensor const& residual, Linear const& linear, at::Tensor const& x,
                     DropoutState const& dropout) {
  auto y = at::addmm(residual, x, linear.weight.t());
  if (linear.bias.defined()) y = y.add_(linear.bias);
  return linear.lora ? add_adapter(std::move(y), *linear.lora, x, dropout) : y;
}

bool trains(Linear const& linear) {
  return linear.weight.requires_grad() || (linear.bias.defined() && linear.bias.requires_grad()) ||
         (linear.lora && (linear.lora->a.requires_grad() || linear.lora->b.requires_grad()));
}

}  // namespace vlrerank
