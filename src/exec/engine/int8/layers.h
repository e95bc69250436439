// SPDX-License-Identifier: Apache-2.0
// Integer layers on oneDNN. Each answers nothing where oneDNN has no exact form: then the plain
// kernel runs.
#pragma once

#include "exec/engine/kernel.h"

namespace quench::exec {

std::optional<Kernel> make_integer_conv(const OpContext& context);
struct ConvAttributes;
struct IntegerTail;
struct SignedWeights;
struct ByteParams;
/// A depthwise convolution by our own loops, which are faster than oneDNN's.
std::optional<Kernel> make_integer_depthwise(const ConvAttributes& attributes,
                                             const ByteParams& source, const IntegerTail& tail,
                                             const SignedWeights& weights, const at::Tensor& bias);
/// A convolution by our own tiles, where they can.
std::optional<Kernel> make_tiled_conv(const ConvAttributes& attributes, const ByteParams& source,
                                      const IntegerTail& tail, const SignedWeights& weights,
                                      const at::Tensor& bias);
/// A convolution without residual as a function of its source.
using BytesFunction = std::function<at::Tensor(const at::Tensor& src)>;
/// Empty where our own tiles cannot.
BytesFunction make_tiled_conv_function(const ConvAttributes& attributes, const ByteParams& source,
                                       const IntegerTail& tail, const SignedWeights& weights,
                                       const at::Tensor& bias);
BytesFunction make_conv_function(const ConvAttributes& attributes, const ByteParams& source,
                                 const IntegerTail& tail, const SignedWeights& weights,
                                 const at::Tensor& bias);
std::optional<Kernel> make_integer_conv_transpose(const OpContext& context);
std::optional<Kernel> make_integer_matmul(const OpContext& context);
/// A function that multiplies rows by constant weights [K, N]; the result has the tail's type.
using RowsFunction = std::function<at::Tensor(const at::Tensor& rows)>;
RowsFunction make_integer_rows(const ByteParams& source, const IntegerTail& tail,
                               const SignedWeights& weights, const at::Tensor& bias);
/// ConvInteger and MatMulInteger: the sums themselves.
std::optional<Kernel> make_integer_conv_sums(const OpContext& context);
std::optional<Kernel> make_integer_sums(const OpContext& context);

/// The sums of a layer in exact arithmetic.
using SumsFunction = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;
/// A layer with the inputs of QLinearConv in exact arithmetic, with its tail. `channel` is the
/// axis of its result that holds the channels, `weight_axis` that of its weights.
Kernel exact_layer(const OpContext& context, SumsFunction sums, std::int64_t channel,
                   std::int64_t weight_axis);

}  // namespace quench::exec
