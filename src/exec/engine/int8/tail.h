// SPDX-License-Identifier: Apache-2.0
// What an integer layer does after its sums: scales, residual, activation, zero point.
#pragma once

#include "exec/engine/int8/byte_params.h"
#include "exec/engine/onednn/plan.h"

namespace quench::exec {

/// Everything behind the sums of a layer, known when its kernel is made.
struct IntegerTail {
  std::vector<float> sum_scales;           ///< of the sums: per tensor or per channel
  std::optional<ByteParams> out;           ///< nothing: the result is float
  at::ScalarType float_type = at::kFloat;  ///< their type
  std::optional<ByteParams> residual;
  Fusion fusion;  ///< its activation
  /// With which the layer is rounded before the residual is added; nothing: it is not.
  std::optional<ByteParams> middle;
  bool residual_first = false;  ///< of the operands of that sum
  Fusion sum;                   ///< the activation behind it: none, relu or clip

  at::ScalarType type() const { return out ? out->type : at::kFloat; }
};

/// The tail of a LayerNode; nothing when a scale is not a constant. Takes the constants.
std::optional<IntegerTail> take_tail(const OpContext& context, const ByteParams& source);
/// The tail without what follows its first rounding.
IntegerTail until_middle(IntegerTail tail);
/// How much of a tail a primitive does. ONNX rounds before it adds the zero point. The sum of both
/// has fewer bits to round by, and one result in 100,000 comes out a step off; but oneDNN cannot
/// round first in every convolution, and some of its kernels take no Sigmoid, Swish or Gelu.
enum class TailForm {
  RoundsFirst,
  RoundsLast,
  Open  ///< its results are the scaled sums; `close_tail` does the rest
};
/// oneDNN's attributes for it; the channels are axis `axis` of the result.
dnnl::primitive_attr integer_attributes(const IntegerTail& tail, int axis, TailForm form);
/// The type of a primitive's results.
dnnl::memory::data_type dnnl_type(const IntegerTail& tail, TailForm form);
/// What an open plan leaves to do; the residual is undefined where the tail has none.
at::Tensor close_tail(const IntegerTail& tail, at::Tensor floats, const at::Tensor& residual);

/// The plan of the first form that oneDNN has.
template <typename Make>
Plan plan_of_tail(Make make) {
  for (const TailForm form : {TailForm::RoundsFirst, TailForm::RoundsLast}) {
    try {
      return make(form);
    } catch (const dnnl::error&) {  // the next form asks for less
    }
  }
  Plan plan = make(TailForm::Open);
  plan.open = true;
  return plan;
}

/// Constant 8-bit weights, kept as they lie in the file (which costs no memory when it is mapped)
/// and packed as the newest plan asked.
class IntegerWeights {
 public:
  IntegerWeights() = default;
  IntegerWeights(at::Tensor plain, dnnl::memory::desc desc)
      : plain_(std::move(plain)), desc_(std::move(desc)) {}
  dnnl::memory as(const dnnl::memory::desc& wanted);

 private:
  at::Tensor plain_;
  dnnl::memory::desc desc_;
  dnnl::memory packed_;
};

/// The weights of a node as int8, and the sum of their distances from zero for each output channel.
struct SignedWeights {
  at::Tensor data;
  std::int32_t zero = 0;
  std::vector<std::int64_t> sums;
};
/// Nothing when the weights are no constants or have several zero points. `axis` holds the output
/// channels.
std::optional<SignedWeights> take_weights(const OpContext& context, std::size_t weight,
                                          std::size_t zero, std::int64_t axis);

/// The bias over the scale of the sums, less what the source's zero point adds to each: 32-bit
/// integers where the node's bias is, else floats. Undefined when there is nothing to add.
at::Tensor sums_bias(const at::Tensor& bias, const std::vector<float>& sum_scales,
                     const std::vector<std::int64_t>& weight_sums, std::int64_t source_zero);

/// Memory for the result: the residual's own where nobody reads that again, else a copy of it.
at::Tensor integer_destination(Call& call, const IntegerTail& tail, at::IntArrayRef shape,
                               at::MemoryFormat format);

}  // namespace quench::exec
