// kernels/dropout.cpp -- counter dropout: schema, gradient, and the CPU's loops.
#include "kernels/dropout.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <bit>
#include <cmath>

#include "core/error.hpp"
#include "kernels/clones.hpp"

namespace vlrerank::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
constexpr int lanes = 16;  // counters made together: 128 features, two vectors wide

/// Scatters the bits of a number over all 64: the finaliser of splitmix64.
std::uint64_t scatter(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

/// Philox for the counters (first + lane, stream, low, high); word w of lane l in words[w][l].
inline void philox_lanes(std::uint32_t (&words)[4][lanes], std::uint32_t first,
                         std::uint32_t stream, std::uint64_t token, std::uint64_t key) {
  for (int l = 0; l < lanes; ++l) {
    words[0][l] = first + static_cast<std::uint32_t>(l);
    words[1][l] = stream;
    words[2][l] = static_cast<std::uint32_t>(token);
    words[3][l] = static_cast<std::uint32_t>(token >> 32);
  }
  auto key_0 = static_cast<std::uint32_t>(key), key_1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, key_0 += weyl_0, key_1 += weyl_1) {
#pragma omp simd
    for (int l = 0; l < lanes; ++l) {
      std::uint64_t const a = std::uint64_t{multiplier_0} * words[0][l];
      std::uint64_t const b = std::uint64_t{multiplier_1} * words[2][l];
      words[0][l] = static_cast<std::uint32_t>(b >> 32) ^ words[1][l] ^ key_0;
      words[1][l] = static_cast<std::uint32_t>(b);
      words[2][l] = static_cast<std::uint32_t>(a >> 32) ^ words[3][l] ^ key_1;
      words[3][l] = static_cast<std::uint32_t>(a);
    }
  }
}

/// Eight neighbours: x * scale where the half word reaches the threshold, else 0.
inline void drop_eight(float* out, float const* x, std::uint32_t const* words, int shift,
                       std::int64_t count, std::uint32_t threshold, float scale) {
  for (std::int64_t l = 0; l < count; ++l)
    out[l] = (words[l] >> shift & 0xffff) >= threshold ? x[l] * scale : 0.0f;
}

/// One token's features. Whole groups of eight have a fixed count, which vectorises.
VLR_CPU_CLONES void drop_row(float* out, float const* x, std::int64_t width, std::uint32_t stream,
                             std::uint64_t token, std::uint64_t key, std::uint32_t threshold,
                             float scale) {
  std::uint32_t words[4][lanes];
  for (std::int64_t begin = 0; begin < width; begin += 8 * lanes) {
    philox_lanes(words, static_cast<std::uint32_t>(begin / 8), stream, token, key);
    for (int tile = 0; tile < lanes / 8; ++tile) {
      for (int half = 0; half < 8; ++half) {
        auto const at = begin + tile * 64 + half * 8;
        auto const* const word = words[half % 4] + tile * 8;
        int const shift = half < 4 ? 0 : 16;
        if (at + 8 <= width)
          drop_eight(out + at, x + at, word, shift, 8, threshold, scale);
        else if (at < width)
          drop_eight(out + at, x + at, word, shift, width - at, threshold, scale);
      }
    }
  }
}

at::Tensor dropout_cpu(at::Tensor const& x, at::Tensor const& token_key, std::int64_t key,
                       std::int64_t stream, double p) {
  auto const in = x.to(at::kFloat).contiguous();
  auto const tokens = token_key.contiguous();
  auto const width = in.size(1);
  auto out = at::empty_like(in);
  // A p of nearly 1 must not round to 1: nothing would be left to scale.
  auto const threshold = std::min(65535u, static_cast<std::uint32_t>(std::llround(p * 65536)));
  auto const scale = 65536.0f / static_cast<float>(65536u - threshold);
  auto const* const from = in.const_data_ptr<float>();
  auto const* const names = tokens.const_data_ptr<std::int64_t>();
  auto* const to = out.mutable_data_ptr<float>();
  at::parallel_for(0, in.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
    for (auto t = begin; t < end; ++t)
      drop_row(to + t * width, from + t * width, width, static_cast<std::uint32_t>(stream),
               static_cast<std::uint64_t>(names[t]), static_cast<std::uint64_t>(key), threshold,
               scale);
  });
  return out.to(x.scalar_type());
}

auto const& dropout_op() {
  static auto const op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("vlrerank::dropout", "")
                             .typed<at::Tensor(at::Tensor const&, at::Tensor const&, std::int64_t,
                                               std::int64_t, double)>();
  return op;
}

/// The gradient passes through the same mask, made again from the same counters.
struct Dropout : torch::autograd::Function<Dropout> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor const& x, at::Tensor const& token_key,
                            std::int64_t key, std::int64_t stream, double p) {
    at::AutoDispatchBelowADInplaceOrView const below;
    ctx->save_for_backward({token_key});
    ctx->saved_data["key"] = key;
    ctx->saved_data["stream"] = stream;
    ctx->saved_data["p"] = p;
    return dropout_op().call(x, token_key, key, stream, p);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    at::AutoDispatchBelowADInplaceOrView const below;
    return {
        dropout_op().call(grads[0], ctx->get_saved_variables()[0], ctx->saved_data["key"].toInt(),
                          ctx->saved_data["stream"].toInt(), ctx->saved_data["p"].toDouble()),
        {},
        {},
        {},
        {}};
  }
};

at::Tensor dropout_autograd(at::Tensor const& x, at::Tensor const& token_key, std::int64_t key,
                            std::int64_t stream, double p) {
  return Dropout::apply(x, token_key, key, stream, p);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  std::uint32_t words[4][lanes];
  // Lane 0 starts at `first`; the other words of the counter are given as stream and token.
  philox_lanes(words, counter[0], counter[1],
               std::uint64_t{counter[3]} << 32 | std::uint64_t{counter[2]},
               std::uint64_t{key[1]} << 32 | std::uint64_t{key[0]});
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

at::Tensor counter_dropout(at::Tensor const& x, at::Tensor const& token_key,
                           DropoutSite const& site) {
  VLR_REQUIRE(x.dim() == 2 && token_key.dim() == 1 && token_key.size(0) == x.size(0) &&
                  token_key.scalar_type() == at::kLong,
              text("dropout got x ", x.sizes(), ", token keys ", token_key.sizes()),
              "pass [T, F] with [T] int64");
  VLR_USAGE(site.p >= 0 && site.p < 1, text("a dropout of ", site.p, " is out of range"),
            "choose at least 0 and less than 1");
  if (site.p == 0) return x;
  auto const key = scatter(site.seed ^ scatter(static_cast<std::uint64_t>(site.step)));
  return dropout_op().call(x, token_key, std::bit_cast<std::int64_t>(key), site.stream, site.p);
}

}  // namespace vlrerank::ops

TORCH_LIBRARY_FRAGMENT(vlrerank, m) {
  m.def("dropout(Tensor x, Tensor token_key, int key, int stream, float p) -> Tensor");
}
TORCH_LIBRARY_IMPL(vlrerank, Autograd, m) {
  m.impl("dropout", vlrerank::ops::dropout_autograd);
}
TORCH_LIBRARY_IMPL(vlrerank, CPU, m) {
  m.impl("dropout", vlrerank::ops::dropout_cpu);
}
