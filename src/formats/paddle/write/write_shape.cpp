// SPDX-License-Identifier: Apache-2.0
// Shapes as values, element types, constants made while the model runs.
#include "formats/paddle/types.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

std::int32_t number_of(const NodeWriter& node, DType dtype) {
  const TypeRow* row = type_row(dtype);
  if (row == nullptr) node.refuse("Paddle has no such element type");
  return row->number;
}

void cast_to(const NodeWriter& node, const std::string& from, DType dtype, DType to) {
  node.op("cast")
      .in("X", from)
      .out("Out", node.out())
      .set("in_dtype", number_of(node, dtype))
      .set("out_dtype", number_of(node, to));
}

void cast(const NodeWriter& node) {
  const DType from = node.type(0).dtype;
  cast_to(node, node.in(), from == DType::Undefined ? DType::Float32 : from,
          node.graph()[node.node.outputs[0]].type.dtype);
}

/// Paddle's shapes are 32-bit integers.
void shape(const NodeWriter& node) {
  if (node.node.get_int("start", 0) != 0 || node.node.find("end") != nullptr) {
    node.refuse("it takes a part of the shape");
  }
  const std::string sizes = node.between("int32");
  node.op("shape").in("Input", node.in()).out("Out", sizes);
  cast_to(node, sizes, DType::Int32, DType::Int64);
}

void range(const NodeWriter& node) {
  node.op("range")
      .in("Start", node.in(0))
      .in("End", node.in(1))
      .in("Step", node.in(2))
      .out("Out", node.out());
}

void constant_of_shape(const NodeWriter& node) {
  const Tensor* value = node.node.get<Tensor>("value");
  const float filled = value == nullptr ? 0.0F : to_float(*value)[0];
  const DType dtype = value == nullptr ? DType::Float32 : value->dtype();
  Op op = node.op("fill_constant");
  if (node.constant(0) == nullptr) op.in("ShapeTensor", node.in());
  op.out("Out", node.out())
      .set("shape",
           node.constant(0) == nullptr ? std::vector<std::int64_t>{} : *node.ints("shape", 0))
      .set("value", filled)
      .set("dtype", number_of(node, dtype));
}

}  // namespace

std::vector<WriteRow> shape_rows() {
  return {
      {"Cast", cast},
      {"Shape", shape},
      {"Range", range},
      {"ConstantOfShape", constant_of_shape},
  };
}

}  // namespace quench::paddle::write
