// SPDX-License-Identifier: Apache-2.0
// Functions and arithmetic, element by element, as TFLite's.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

/// The layout to work in: channels last where an operand of the result's rank is at hand so.
Layout layout_for(const Writer& writer, const Node& node, bool integers) {
  const std::int64_t rank = writer.rank(node.outputs[0]);
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || writer.constant(input) != nullptr) continue;
    const ValueId from = writer.source(input, integers);
    if (rank >= 3 && writer.rank(from) == rank && writer.layout_of(from) == Layout::Last) {
      return Layout::Last;
    }
  }
  return Layout::First;
}

/// From which version on an operator takes int8; LiteRT refuses one that it does not have.
int integer_version(std::string_view name) {
  static constexpr auto kFirst =
      std::to_array<std::string_view>({"CEIL", "ELU", "FLOOR", "HARD_SWISH", "NEG", "SQRT"});
  return std::ranges::find(kFirst, name) == kFirst.end() ? 2 : 1;
}

void unary(Writer& writer, const Node& node, const std::string& name, const Options& options = {},
           const Quantization* fixed = nullptr) {
  const Result result = writer.result_of(node, {node.inputs[0]}, false);
  const Layout layout = layout_for(writer, node, result.integers);
  const int x = writer.tensor(writer.source(node.inputs[0], result.integers), layout);
  writer.add(name, {x}, result, layout, options, fixed,
             result.integers ? integer_version(name) : 1);
}

template <const char* kName>
void write_same(Writer& writer, const Node& node) {
  unary(writer, node, kName);
}

#define QUENCH_SAME(onnx, tflite)          \
  constexpr char k##onnx##Name[] = tflite; \
  constexpr WriteRow k##onnx##Row{#onnx, write_same<k##onnx##Name>};
QUENCH_SAME(Relu, "RELU")
QUENCH_SAME(Exp, "EXP")
QUENCH_SAME(Log, "LOG")
QUENCH_SAME(Sqrt, "SQRT")
QUENCH_SAME(Abs, "ABS")
QUENCH_SAME(Neg, "NEG")
QUENCH_SAME(Floor, "FLOOR")
QUENCH_SAME(Ceil, "CEIL")
QUENCH_SAME(Elu, "ELU")
QUENCH_SAME(HardSwish, "HARD_SWISH")
#undef QUENCH_SAME

/// TFLite's kernels make these at one scale only.
const Quantization& shares() {
  static const Quantization scales{.scale = {1.0F / 256}, .zero_point = {-128}, .axis = 0};
  return scales;
}

void write_sigmoid(Writer& writer, const Node& node) {
  unary(writer, node, "LOGISTIC", {}, &shares());
}

void write_tanh(Writer& writer, const Node& node) {
  static const Quantization scales{.scale = {1.0F / 128}, .zero_point = {0}, .axis = 0};
  unary(writer, node, "TANH", {}, &scales);
}

void write_leaky_relu(Writer& writer, const Node& node) {
  unary(writer, node, "LEAKY_RELU", {{"alpha", double{node.get_float("alpha", 0.01F)}}});
}

void write_softmax(Writer& writer, const Node& node) {
  const std::int64_t rank = writer.rank(node.inputs[0]);
  const std::int64_t given = node.get_int("axis", -1);
  const std::int64_t axis = given < 0 ? given + rank : given;
  const bool channels = rank >= 3 && axis == 1;
  if (!channels && axis != rank - 1) {
    fail(ErrorKind::Unsupported, "it goes along dimension {}; the last or the channels are written",
         axis);
  }
  const Result result = writer.result_of(node, {node.inputs[0]}, false);
  const Layout layout = channels ? Layout::Last : Layout::First;
  const int x = writer.tensor(writer.source(node.inputs[0], result.integers), layout);
  writer.add("SOFTMAX", {x}, result, layout, {{"beta", 1.0}}, &shares(), result.integers ? 2 : 1);
}

/// A number that integers are computed with: one byte of its own scale.
int add_number(Writer& writer, const std::string& name, float number) {
  constexpr std::int8_t kMost = 127;
  return writer.add_constant(name, Tensor::scalar(kMost),
                             {.scale = {number / kMost}, .zero_point = {0}, .axis = 0});
}

/// alpha * (x + beta / alpha) on integers. The sum has the steps of the result, so that its bytes
/// end where the function does and the product only renames them: one rounding in all.
void write_hard_sigmoid_on_integers(Writer& writer, const Node& node, const Result& result) {
  const float alpha = node.get_float("alpha", 0.2F);
  const float beta = node.get_float("beta", 0.5F);
  const Layout layout = layout_for(writer, node, true);
  const std::string& name = writer.graph()[node.outputs[0]].name;
  TensorItem sum = writer.described(result.value, layout);
  sum.quantization = {.scale = {1 / (256 * alpha)}, .zero_point = {-128}, .axis = 0};
  const int x = writer.tensor(writer.source(node.inputs[0], true), layout);
  constexpr std::int64_t kNone = 0;
  const int shifted =
      writer.add_between("ADD", {x, add_number(writer, name + "/shift", beta / alpha)},
                         std::move(sum), {{"fused", kNone}}, 2);
  writer.add("MUL", {shifted, add_number(writer, name + "/slope", alpha)}, result, layout,
             {{"fused", kNone}}, &shares(), 2);
}

/// min(max(alpha * x + beta, 0), 1), in three operators.
void write_hard_sigmoid(Writer& writer, const Node& node) {
  // Scales are positive: so must be what they hold.
  if (node.get_float("alpha", 0.2F) > 0 && node.get_float("beta", 0.5F) > 0) {
    const Result result = writer.result_of(node, {node.inputs[0]}, false);
    if (result.integers) return write_hard_sigmoid_on_integers(writer, node, result);
  }
  const Layout layout = layout_for(writer, node, false);
  const TensorItem made = writer.described(node.outputs[0], layout);
  const auto number = [&](const char* name, float value) {
    return writer.add_constant(node.name + name, Tensor::scalar(value));
  };
  const int x = writer.tensor(node.inputs[0], layout);
  const int scaled =
      writer.add_between("MUL", {x, number("/alpha", node.get_float("alpha", 0.2F))}, made);
  constexpr std::int64_t kRelu = 1;
  const int shifted = writer.add_between(
      "ADD", {scaled, number("/beta", node.get_float("beta", 0.5F))}, made, {{"fused", kRelu}});
  writer.add("MINIMUM", {shifted, number("/one", 1)}, {.value = node.outputs[0]}, layout);
}

/// One that no layer before it fuses: RELU6, or two limits.
void write_clip(Writer& writer, const Node& node) {
  const auto limit = [&](std::size_t input) -> std::optional<float> {
    const Tensor* given = writer.constant(node.input(input));
    if (given == nullptr) {
      if (node.input(input) != kNoValue) fail(ErrorKind::Unsupported, "its limits are computed");
      return std::nullopt;
    }
    return to_float(*given).at(0);
  };
  const auto low = limit(1), high = limit(2);
  if (low == 0.0F && high == 6.0F) return unary(writer, node, "RELU6");
  if (low == 0.0F && !high) return unary(writer, node, "RELU");
  const Layout layout = layout_for(writer, node, false);
  int x = writer.tensor(node.inputs[0], layout);
  if (low && high) {
    x = writer.add_between("MAXIMUM",
                           {x, writer.add_constant(node.name + "/min", Tensor::scalar(*low))},
                           writer.described(node.outputs[0], layout));
  }
  const float last = high ? *high : low.value_or(0);
  writer.add(high ? "MINIMUM" : "MAXIMUM",
             {x, writer.add_constant(node.name + "/limit", Tensor::scalar(last))},
             {.value = node.outputs[0]}, layout);
}

template <const char* kName, bool kFuses>
void write_two(Writer& writer, const Node& node) {
  if (node.inputs.size() != 2) fail(ErrorKind::Unsupported, "it has not two operands");
  const Result result = writer.result_of(node, node.inputs, kFuses);
  const Layout layout = layout_for(writer, node, result.integers);
  const std::int64_t rank = writer.rank(node.outputs[0]);
  const int a = writer.operand(node.inputs[0], layout, rank, result.integers);
  const int b = writer.operand(node.inputs[1], layout, rank, result.integers);
  Options options;
  if constexpr (kFuses) options.push_back({"fused", result.fused});
  writer.add(kName, {a, b}, result, layout, options, nullptr, result.integers ? 2 : 1);
}

constexpr char kAdd[] = "ADD";
constexpr char kSub[] = "SUB";
constexpr char kMul[] = "MUL";
constexpr char kDiv[] = "DIV";
constexpr char kPow[] = "POW";
constexpr char kMax[] = "MAXIMUM";
constexpr char kMin[] = "MINIMUM";

constexpr auto kRows = std::to_array<WriteRow>({
    kReluRow,
    kExpRow,
    kLogRow,
    kSqrtRow,
    kAbsRow,
    kNegRow,
    kFloorRow,
    kCeilRow,
    kEluRow,
    kHardSwishRow,
    {"Sigmoid", write_sigmoid},
    {"Tanh", write_tanh},
    {"LeakyRelu", write_leaky_relu},
    {"HardSigmoid", write_hard_sigmoid},
    {"Softmax", write_softmax},
    {"Clip", write_clip},
    {"Add", write_two<kAdd, true>},
    {"Sub", write_two<kSub, true>},
    {"Mul", write_two<kMul, true>},
    {"Div", write_two<kDiv, true>},
    {"Pow", write_two<kPow, false>},
    {"Max", write_two<kMax, false>},
    {"Min", write_two<kMin, false>},
});

}  // namespace

std::span<const WriteRow> function_rows() { return kRows; }

}  // namespace quench::tflite::write
