// SPDX-License-Identifier: Apache-2.0
// Reductions but the mean, comparisons and choices, as TFLite's. They are written in float.
#include <array>
#include <numeric>

#include "base/format.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

template <const char* kName>
void write_reduce(Writer& writer, const Node& node) {
  Ints axes = node.get_ints("axes");
  if (node.input(1) != kNoValue) {
    const Tensor* given = writer.constant(node.inputs[1]);
    if (given == nullptr) fail(ErrorKind::Unsupported, "its axes are computed");
    const Tensor wide = convert(*given, DType::Int64);
    const auto data = wide.data<std::int64_t>();
    axes.assign(data.begin(), data.end());
  }
  const std::int64_t rank = writer.rank(node.inputs[0]);
  if (axes.empty()) {
    if (node.get_int("noop_with_empty_axes", 0) != 0) {
      fail(ErrorKind::Unsupported, "it reduces nothing");
    }
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  const int x = writer.tensor(node.inputs[0], Layout::First);
  writer.add(kName, {x, writer.add_ints(writer.graph()[node.outputs[0]].name + "/axes", axes)},
             {.value = node.outputs[0]}, Layout::First,
             {{"keep", std::int64_t{node.get_int("keepdims", 1) != 0}}});
}

/// Operands as they lie in ONNX, where broadcasting goes by the last dimensions as in TFLite.
template <const char* kName>
void write_operands(Writer& writer, const Node& node) {
  std::vector<int> operands;
  for (const ValueId input : node.inputs) operands.push_back(writer.tensor(input, Layout::First));
  writer.add(kName, std::move(operands), {.value = node.outputs[0]}, Layout::First);
}

constexpr char kSum[] = "SUM";
constexpr char kMax[] = "REDUCE_MAX";
constexpr char kMin[] = "REDUCE_MIN";
constexpr char kProd[] = "REDUCE_PROD";
constexpr char kEqual[] = "EQUAL";
constexpr char kLess[] = "LESS";
constexpr char kGreater[] = "GREATER";
constexpr char kSelect[] = "SELECT_V2";

constexpr auto kRows = std::to_array<WriteRow>({
    {"ReduceSum", write_reduce<kSum>},
    {"ReduceMax", write_reduce<kMax>},
    {"ReduceMin", write_reduce<kMin>},
    {"ReduceProd", write_reduce<kProd>},
    {"Equal", write_operands<kEqual>},
    {"Less", write_operands<kLess>},
    {"Greater", write_operands<kGreater>},
    {"Where", write_operands<kSelect>},
});

}  // namespace

std::span<const WriteRow> reduce_rows() { return kRows; }

}  // namespace quench::tflite::write
