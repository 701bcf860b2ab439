// model/linear.cpp -- the products of a linear layer and its adapter.
#include "model/linear.hpp"

#include <ATen/ATen.h>

#include "kernels/dropout.hpp"

namespace vlrerank {
namespace {

/// Adds scale * B A dropout(x) to y, which nothing else holds yet.
at::Tensor add_adapter(at::Tensor y, LoraPair const& lora, at::Tensor const& x,
                       DropoutState const& dropout) {
  auto in = x.to(lora.a.scalar_type());
  if (dropout.active && lora.dropout > 0)
    in = ops::counter_dropout(in, dropout.token_key,
                              {dropout.seed, dropout.step, lora.module_id, lora.dropout});
  auto const low = in.matmul(lora.a.t());
  if (y.scalar_type() == low.scalar_type()) return y.addmm_(low, lora.b.t(), 1, lora.scale);
  return y.add_(low.matmul(lora.b.t()).to(y.scalar_type()), lora.scale);
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
