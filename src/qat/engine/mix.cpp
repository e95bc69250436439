// SPDX-License-Identifier: Apache-2.0
// An autograd function over the loops; nothing is kept for the backward pass but the seed.
#include "qat/engine/mix.h"

#include "qat/engine/on_gpu.h"

namespace quench::qat {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Calls body(first element, count, chance) of every stretch on all threads.
template <typename Body>
void for_each_stretch(std::int64_t elements, const Chance& chance, const Body& body) {
  const std::int64_t stretches = (elements + kStretch - 1) / kStretch;
  at::parallel_for(0, stretches, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * kStretch;
      const StretchChance own{.bound = bound_of_share(chance.share),
                              .seed = seed_of_stretch(chance.seed, static_cast<std::uint64_t>(i))};
      body(first, std::min(kStretch, elements - first), own);
    }
  });
}

Chance chance_of(AutogradContext& context) {
  return {.share = context.saved_data["share"].toDouble(),
          .seed = static_cast<std::uint64_t>(context.saved_data["seed"].toInt())};
}

class Mix : public torch::autograd::Function<Mix> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& one,
                            const at::Tensor& other, double share, std::int64_t seed) {
    context->saved_data["share"] = share;
    context->saved_data["seed"] = seed;
    if (one.is_cuda()) {
      at::Tensor mixed = mix_on_gpu(one, other, chance_of(*context));
      context->save_for_backward({mixed});
      return mixed;
    }
    at::Tensor result = at::empty_like(one);
    const float* ones = one.data_ptr<float>();
    const float* others = other.data_ptr<float>();
    float* dst = result.data_ptr<float>();
    for_each_stretch(one.numel(), {.share = share, .seed = static_cast<std::uint64_t>(seed)},
                     [&](auto first, auto count, const StretchChance& chance) {
                       mix_loop(ones + first, others + first, count, chance, dst + first);
                     });
    context->save_for_backward({result});  // its layout
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor layout = context->get_saved_variables()[0];
    at::Tensor gradient = gradients[0];
    if (gradient.strides() != layout.strides()) gradient = at::empty_like(layout).copy_(gradient);
    const Chance all = chance_of(*context);
    if (layout.is_cuda()) {
      const auto [done, dother] = unmix_on_gpu(gradient, all);
      return {done, dother, at::Tensor(), at::Tensor()};
    }
    at::Tensor done = at::empty_like(layout);
    at::Tensor dother = at::empty_like(layout);
    const float* from = gradient.data_ptr<float>();
    float* ones = done.data_ptr<float>();
    float* others = dother.data_ptr<float>();
    for_each_stretch(layout.numel(), all, [&](auto first, auto count, const StretchChance& chance) {
      unmix_loop(from + first, count, chance, ones + first, others + first);
    });
    return {done, dother, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor mixed(const at::Tensor& one, const at::Tensor& other, const Chance& chance) {
  const bool same = one.strides() == other.strides() && one.is_non_overlapping_and_dense();
  return Mix::apply(same ? one : one.contiguous(), same ? other : other.contiguous(), chance.share,
                    static_cast<std::int64_t>(chance.seed));
}

}  // namespace quench::qat
