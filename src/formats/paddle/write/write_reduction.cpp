// SPDX-License-Identifier: Apache-2.0
// Reductions, places of maxima, running sums.
#include "formats/paddle/types.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

void reduce(const NodeWriter& node, const char* type) {
  const auto axes = node.ints("axes", 1);
  const bool all = !axes || axes->empty();
  if (all && node.node.get_int("noop_with_empty_axes", 0) != 0) {
    node.unary("assign");
    return;
  }
  node.unary(type)
      .set("dim", all ? Ints{0} : narrow(*axes))
      .set("keep_dim", node.node.get_int("keepdims", 1) != 0)
      .set("reduce_all", all);
}

void arg(const NodeWriter& node, const char* type) {
  node.unary(type)
      .set("axis", node.node.get_int("axis", 0))
      .set("keepdims", node.node.get_int("keepdims", 1) != 0)
      .set("flatten", false)
      .set("dtype", type_row(DType::Int64)->number);
}

void top_k(const NodeWriter& node) {
  const auto count = node.ints("k", 1);
  if (!count || count->size() != 1) node.refuse("its number of values is not a constant");
  Op op = node.op("top_k_v2");
  op.in("X", node.in()).out("Out", node.out(0));
  op.out("Indices", node.node.outputs.size() > 1 ? node.out(1) : node.between("indices"));
  op.set("k", static_cast<std::int32_t>((*count)[0]))
      .set("axis", static_cast<std::int32_t>(node.node.get_int("axis", -1)))
      .set("largest", node.node.get_int("largest", 1) != 0)
      .set("sorted", node.node.get_int("sorted", 1) != 0);
}

void cum_sum(const NodeWriter& node) {
  const auto axis = node.ints("axis", 1);
  if (!axis || axis->size() != 1) node.refuse("its axis is not a constant");
  node.unary("cumsum")
      .set("axis", static_cast<std::int32_t>((*axis)[0]))
      .set("exclusive", node.node.get_int("exclusive", 0) != 0)
      .set("reverse", node.node.get_int("reverse", 0) != 0)
      .set("flatten", false);
}

#define QUENCH_REDUCE(onnx, paddle)                            \
  {                                                            \
    onnx, [](const NodeWriter& node) { reduce(node, paddle); } \
  }

}  // namespace

std::vector<WriteRow> reduction_rows() {
  return {
      QUENCH_REDUCE("ReduceMean", "reduce_mean"),
      QUENCH_REDUCE("ReduceSum", "reduce_sum"),
      QUENCH_REDUCE("ReduceMax", "reduce_max"),
      QUENCH_REDUCE("ReduceMin", "reduce_min"),
      QUENCH_REDUCE("ReduceProd", "reduce_prod"),
      {"ArgMax", [](const NodeWriter& node) { arg(node, "arg_max"); }},
      {"ArgMin", [](const NodeWriter& node) { arg(node, "arg_min"); }},
      {"TopK", top_k},
      {"CumSum", cum_sum},
  };
}

}  // namespace quench::paddle::write
