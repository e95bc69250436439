// SPDX-License-Identifier: Apache-2.0
// Caffe's functions, element by element.
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"

namespace quench::caffe {
namespace {

/// A node of the same meaning and no attributes.
template <const char* kOpType>
void read_same(Layer& layer) {
  layer.set(layer.make().node(kOpType, {layer.in()}), layer.shape());
}

constexpr char kSigmoid[] = "Sigmoid";
constexpr char kTanh[] = "Tanh";
constexpr char kAbs[] = "Abs";
constexpr char kSoftplus[] = "Softplus";
constexpr char kHardSwish[] = "HardSwish";

void read_relu(Layer& layer) {
  const float slope = layer.parameter().relu_param().negative_slope();
  layer.set(slope == 0 ? layer.make().node("Relu", {layer.in()})
                       : layer.make().node("LeakyRelu", {layer.in()}, {{"alpha", slope}}),
            layer.shape());
}

void read_relu6(Layer& layer) { layer.set(layer.make().clip(layer.in(), 0, 6), layer.shape()); }

void read_clip(Layer& layer) {
  const ClipParameter& given = layer.parameter().clip_param();
  layer.set(layer.make().clip(layer.in(), given.min(), given.max()), layer.shape());
}

void read_prelu(Layer& layer) {
  const bool shared = layer.parameter().prelu_param().channel_shared();
  Shape shape(static_cast<std::size_t>(std::max<std::int64_t>(layer.rank() - 1, 1)), 1);
  if (!shared) shape[0] = layer.dim(1);
  const ValueId slope = layer.make().constant(layer.blob(0, shape));
  layer.set(layer.make().node("PRelu", {layer.in(), slope}), layer.shape());
}

void read_elu(Layer& layer) {
  layer.set(
      layer.make().node("Elu", {layer.in()}, {{"alpha", layer.parameter().elu_param().alpha()}}),
      layer.shape());
}

void read_swish(Layer& layer) {
  const float beta = layer.parameter().swish_param().beta();
  ValueId inner = layer.in();
  if (beta != 1) inner = layer.make().node("Mul", {inner, layer.make().scalar(beta)});
  const ValueId gate = layer.make().node("Sigmoid", {inner});
  layer.set(layer.make().node("Mul", {layer.in(), gate}), layer.shape());
}

/// shift + scale * x
ValueId straight(Layer& layer, double scale, double shift) {
  ValueId x = layer.in();
  if (scale != 1) x = layer.make().node("Mul", {x, layer.make().scalar(scale)});
  if (shift != 0) x = layer.make().node("Add", {x, layer.make().scalar(shift)});
  return x;
}

void read_power(Layer& layer) {
  const PowerParameter& given = layer.parameter().power_param();
  ValueId y = straight(layer, given.scale(), given.shift());
  if (given.power() != 1) y = layer.make().node("Pow", {y, layer.make().scalar(given.power())});
  if (y == layer.in()) y = layer.make().node("Identity", {y});
  layer.set(y, layer.shape());
}

/// base ^ (shift + scale * x), by default of e.
void read_exp(Layer& layer) {
  const ExpParameter& given = layer.parameter().exp_param();
  if (given.base() != -1 && given.base() <= 0) fail(ErrorKind::BadModel, "its base is not above 0");
  const double log = given.base() == -1 ? 1 : std::log(static_cast<double>(given.base()));
  layer.set(layer.make().node("Exp", {straight(layer, log * given.scale(), log * given.shift())}),
            layer.shape());
}

void read_log(Layer& layer) {
  const ExpParameter& given = layer.parameter().log_param();
  if (given.base() != -1 && given.base() <= 0) fail(ErrorKind::BadModel, "its base is not above 0");
  ValueId y = layer.make().node("Log", {straight(layer, given.scale(), given.shift())});
  if (given.base() != -1) {
    const double log = std::log(static_cast<double>(given.base()));
    y = layer.make().node("Div", {y, layer.make().scalar(log)});
  }
  layer.set(y, layer.shape());
}

void read_threshold(Layer& layer) {
  const ValueId limit = layer.make().scalar(layer.parameter().threshold_param().threshold());
  const ValueId above = layer.make().node("Greater", {layer.in(), limit});
  layer.set(layer.make().cast(above, DType::Float32), layer.shape());
}

/// What does nothing once a network is trained, or has several names for one blob.
void read_nothing(Layer& layer) {
  for (std::size_t i = 0; i < layer.num_tops(); ++i) layer.set(layer.in(), layer.shape(), i);
}

void read_silence(Layer& layer) {
  for (std::size_t i = 0; i < layer.num_bottoms(); ++i) (void)layer.in(i);
}

void expect_alike(Layer& layer) {
  for (std::size_t i = 1; i < layer.num_bottoms(); ++i) {
    if (layer.shape(i) == layer.shape()) continue;
    fail(ErrorKind::BadModel, "its bottoms have the shapes {} and {}", to_string(layer.shape()),
         to_string(layer.shape(i)));
  }
}

void read_eltwise(Layer& layer) {
  expect_alike(layer);
  const EltwiseParameter& given = layer.parameter().eltwise_param();
  const bool sum = given.operation() == EltwiseParameter::SUM;
  if (given.coeff_size() > 0 &&
      (!sum || static_cast<std::size_t>(given.coeff_size()) != layer.num_bottoms())) {
    fail(ErrorKind::BadModel, "it has {} coefficients for {} bottoms", given.coeff_size(),
         layer.num_bottoms());
  }
  std::string_view op = sum ? "Add" : "Mul";
  if (given.operation() == EltwiseParameter::MAX) op = "Max";
  ValueId y = kNoValue;
  for (std::size_t i = 0; i < layer.num_bottoms(); ++i) {
    ValueId x = layer.in(i);
    const float coefficient = given.coeff_size() > 0 ? given.coeff(static_cast<int>(i)) : 1.0F;
    if (coefficient != 1) x = layer.make().node("Mul", {x, layer.make().scalar(coefficient)});
    y = y == kNoValue ? x : layer.make().node(op, {y, x});
  }
  layer.set(y, layer.shape());
}

constexpr auto kRows = std::to_array<LayerRow>({
    {"ReLU", read_relu},
    {"ReLU6", read_relu6},
    {"Clip", read_clip},
    {"PReLU", read_prelu},
    {"ELU", read_elu},
    {"Sigmoid", read_same<kSigmoid>},
    {"TanH", read_same<kTanh>},
    {"AbsVal", read_same<kAbs>},
    {"BNLL", read_same<kSoftplus>},
    {"HardSwish", read_same<kHardSwish>},
    {"Swish", read_swish},
    {"Power", read_power},
    {"Exp", read_exp},
    {"Log", read_log},
    {"Threshold", read_threshold},
    {"Dropout", read_nothing},
    {"Split", read_nothing},
    {"Silence", read_silence},
    {"Eltwise", read_eltwise},
});

}  // namespace

std::span<const LayerRow> function_rows() { return kRows; }

}  // namespace quench::caffe
