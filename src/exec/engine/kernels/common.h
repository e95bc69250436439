// SPDX-License-Identifier: Apache-2.0
// Small helpers that most kernels share.
#pragma once

#include <type_traits>

#include "exec/engine/kernel.h"

namespace quench::exec {

using Ints = std::vector<std::int64_t>;

using InPlace = at::Tensor& (*)(at::Tensor&);

/// Whether a template argument is a function and not null. Compared as types: under UBSan g++ 12
/// does not take the address of a function for a constant.
template <auto kFunction>
constexpr bool kIsGiven =
    !std::is_same_v<std::integral_constant<decltype(kFunction), kFunction>,
                    std::integral_constant<decltype(kFunction), decltype(kFunction){nullptr}>>;

/// A kernel of one input and one output that has no attributes. `kInPlace` does the same to an
/// input that nobody reads any more.
template <at::Tensor (*kFunction)(const at::Tensor&), InPlace kInPlace = nullptr>
KernelInfo unary(std::int64_t since = 1, bool any_float = false) {
  return {.since = since,
          .make = [](const OpContext&) -> Kernel {
            return [](Call& call) {
              if constexpr (kIsGiven<kInPlace>) {
                if (call.dies(0)) {
                  at::Tensor x = call.in(0);
                  kInPlace(x);
                  return call.set(0, std::move(x));
                }
              }
              call.set(0, kFunction(call.in(0)));
            };
          },
          .any_float = any_float};
}

/// Makes a kernel of one input from a function of that input.
template <typename F>
Kernel map_input(F function) {
  return [function = std::move(function)](Call& call) { call.set(0, function(call.in(0))); };
}

/// An axis counted from the front; throws when there is no such axis.
std::int64_t wrap_axis(std::int64_t axis, std::int64_t rank);
/// Likewise for several.
Ints wrap_axes(Ints axes, std::int64_t rank);

/// The elements of a tensor of integers.
Ints to_ints(const at::Tensor& tensor);
/// The elements of a tensor of numbers.
std::vector<double> to_doubles(const at::Tensor& tensor);
/// The first element of a tensor of integers or floats.
std::int64_t to_int(const at::Tensor& tensor);
double to_double(const at::Tensor& tensor);

/// Integers that older opsets have as attribute `name` and newer ones as input `index`.
struct IntsSource {
  Ints fixed;
  std::size_t index = 0;
  bool from_input = false;

  IntsSource(const OpContext& context, std::string_view name, std::size_t input,
             std::int64_t input_since);
  /// Nothing when the model gives neither.
  std::optional<Ints> get(const Call& call) const;

 private:
  bool given_ = false;
};

/// `dims` as a shape of rank `rank` where axis `axis` has its size and every other is 1.
at::Tensor along_axis(const at::Tensor& vector, std::int64_t axis, std::int64_t rank);

/// Indices with negative ones counted from the end; throws when one lies outside.
at::Tensor wrap_indices(const at::Tensor& indices, std::int64_t size);

/// The attributes that convolutions and pools share.
struct Window {
  Ints kernel;
  Ints strides;
  Ints pads;  ///< begins, then ends
  Ints dilations;
  std::string auto_pad;

  /// For `rank` spatial axes; missing attributes get their defaults.
  Window(const Node& node, std::size_t rank);
  /// The pads for an input of these spatial sizes: begins, then ends.
  Ints pads_for(at::IntArrayRef spatial, const Ints& kernel_shape) const;
};

/// Whether begins and ends are equal.
bool symmetric(const Ints& pads);
/// Pads (begins, then ends, of the last axes) as `constant_pad_nd` wants them.
Ints torch_pads(const Ints& pads);
/// `size` elements of `pads` from the front.
Ints begins(const Ints& pads);

/// Softmax by our own loops where the axis is the last one.
at::Tensor fast_softmax(const at::Tensor& x, std::int64_t axis);

}  // namespace quench::exec
