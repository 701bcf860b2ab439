// kernels/ops.cpp -- operator schemas, argument checks and gradients, for every device.
#include "kernels/ops.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "core/error.hpp"

namespace vlrerank::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using Below = at::AutoDispatchBelowADInplaceOrView;
using Two = std::tuple<at::Tensor, at::Tensor>;

template <class Signature>
auto find_op(char const* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

struct RmsNorm : Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& x, at::Tensor const& weight,
                            double eps) {
    Below const below;
    ctx->save_for_backward({x, weight});
    ctx->saved_data["eps"] = eps;
    return ops::rms_norm(x, weight, eps);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    static auto const op =
        find_op<Two(at::Tensor const&, at::Tensor const&, at::Tensor const&, double)>(
            "vlrerank::rms_norm_backward");
    auto const saved = ctx->get_saved_variables();
    auto [dx, dweight] =
        op.call(grads[0].contiguous(), saved[0], saved[1], ctx->saved_data["eps"].toDouble());
    return {dx, dweight, {}};
  }
};

struct Swiglu : Function<Swiglu> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& gate, at::Tensor const& up) {
    Below const below;
    ctx->save_for_backward({gate, up});
    return ops::swiglu(gate, up);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    static auto const op = find_op<Two(at::Tensor const&, at::Tensor const&, at::Tensor const&)>(
        "vlrerank::swiglu_backward");
    auto const saved = ctx->get_saved_variables();
    auto [dgate, dup] = op.call(grads[0].contiguous(), saved[0], saved[1]);
    return {dgate, dup};
  }
};

struct Rope : Function<Rope> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& x, at::Tensor const& cos,
                            at::Tensor const& sin) {
    Below const below;
    ctx->save_for_backward({cos, sin});
    return ops::rope(x, cos, sin);
  }
  /// A rotation's transpose is the rotation by the negative angle.
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto const saved = ctx->get_saved_variables();
    Below const below;
    return {ops::rope(grads[0], saved[0], saved[1].neg()), {}, {}};
  }
};

struct QkNormRope : Function<QkNormRope> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& x, at::Tensor const& weight,
                            at::Tensor const& cos, at::Tensor const& sin, double eps) {
    Below const below;
    ctx->save_for_backward({x, weight, cos, sin});
    ctx->saved_data["eps"] = eps;
    return ops::qk_norm_rope(x, weight, cos, sin, eps);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    static auto const op =
        find_op<Two(at::Tensor const&, at::Tensor const&, at::Tensor const&, at::Tensor const&,
                    at::Tensor const&, double)>("vlrerank::qk_norm_rope_backward");
    auto const saved = ctx->get_saved_variables();
    auto [dx, dweight] = op.call(grads[0].contiguous(), saved[0], saved[1], saved[2], saved[3],
                                 ctx->saved_data["eps"].toDouble());
    return {dx, dweight, {}, {}, {}};
  }
};

at::Tensor rms_norm_autograd(at::Tensor const& x, at::Tensor const& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}
at::Tensor swiglu_autograd(at::Tensor const& gate, at::Tensor const& up) {
  return Swiglu::apply(gate, up);
}
at::Tensor rope_autograd(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin) {
  return Rope::apply(x, cos, sin);
}
at::Tensor qk_norm_rope_autograd(at::Tensor const& x, at::Tensor const& weight,
                                 at::Tensor const& cos, at::Tensor const& sin, double eps) {
  return QkNormRope::apply(x, weight, cos, sin, eps);
}

void check_rotary(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin) {
  VLR_REQUIRE(x.dim() == 3 && x.size(2) % 2 == 0 && cos.sizes() == sin.sizes() && cos.dim() == 2 &&
                  cos.size(0) == x.size(0) && cos.size(1) * 2 == x.size(2) &&
                  cos.scalar_type() == at::kFloat && sin.scalar_type() == at::kFloat,
              text("rotary got x ", x.sizes(), ", cos ", cos.sizes(), ", sin ", sin.sizes()),
              "pass [T, N, D] with [T, D / 2] float32");
}

}  // namespace

at::Tensor rms_norm(at::Tensor const& x, at::Tensor const& weight, double eps) {
  VLR_REQUIRE(x.dim() >= 1 && weight.dim() == 1 && x.size(-1) == weight.size(0),
              text("rms_norm got x ", x.sizes(), ", weight ", weight.sizes()),
              "pass [..., H] with [H]");
  static auto const op =
      find_op<at::Tensor(at::Tensor const&, at::Tensor const&, double)>("vlrerank::rms_norm");
  return op.call(x, weight, eps);
}

at::Tensor swiglu(at::Tensor const& gate, at::Tensor const& up) {
  VLR_REQUIRE(gate.dim() == 2 && gate.sizes() == up.sizes(),
              text("swiglu got gate ", gate.sizes(), ", up ", up.sizes()), "pass two [T, I]");
  static auto const op =
      find_op<at::Tensor(at::Tensor const&, at::Tensor const&)>("vlrerank::swiglu");
  return op.call(gate, up);
}

at::Tensor rope(at::Tensor const& x, at::Tensor const& cos, at::Tensor const& sin) {
  check_rotary(x, cos, sin);
  static auto const op =
      find_op<at::Tensor(at::Tensor const&, at::Tensor const&, at::Tensor const&)>(
          "vlrerank::rope");
  return op.call(x, cos, sin);
}

at::Tensor qk_norm_rope(at::Tensor const& x, at::Tensor const& weight, at::Tensor const& cos,
                        at::Tensor const& sin, double eps) {
  check_rotary(x, cos, sin);
  VLR_REQUIRE(weight.dim() == 1 && weight.size(0) == x.size(2),
              text("qk_norm_rope got x ", x.sizes(), ", weight ", weight.sizes()),
              "pass a weight of [D]");
  static auto const op = find_op<at::Tensor(at::Tensor const&, at::Tensor const&, at::Tensor const&,
                                            at::Tensor const&, double)>("vlrerank::qk_norm_rope");
  return op.call(x, weight, cos, sin, eps);
}

}  // namespace vlrerank::ops

TORCH_LIBRARY(vlrerank, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)");
  m.def("swiglu(Tensor gate, Tensor up) -> Tensor");
  m.def("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)");
  m.def("rope(Tensor x, Tensor cos, Tensor sin) -> Tensor");
  m.def("qk_norm_rope(Tensor x, Tensor weight, Tensor cos, Tensor sin, float eps) -> Tensor");
  m.def(
      "qk_norm_rope_backward(Tensor grad, Tensor x, Tensor weight, Tensor cos, Tensor sin, "
      "float eps) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(vlrerank, Autograd, m) {
  m.impl("rms_norm", vlrerank::ops::rms_norm_autograd);
  m.impl("swiglu", vlrerank::ops::swiglu_autograd);
  m.impl("rope", vlrerank::ops::rope_autograd);
  m.impl("qk_norm_rope", vlrerank::ops::qk_norm_rope_autograd);
}
