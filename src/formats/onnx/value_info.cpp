// SPDX-License-Identifier: Apache-2.0
// Declarations of values: names, types and symbolic shapes.
#include <algorithm>

#include "base/format.h"
#include "formats/foreign.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

Dim read_dim(TensorShapeProto::Dimension& proto) {
  Dim dim;
  if (proto.has_dim_value() && proto.dim_value() >= 0) {
    dim.value = proto.dim_value();
  } else {
    dim.symbol = proto.dim_param();
  }
  proto.clear_dim_value();
  proto.clear_dim_param();
  return dim;
}

/// Reads the shape and leaves only dimensions' denotations, if there are any.
std::optional<std::vector<Dim>> read_shape(TypeProto::Tensor& proto) {
  if (!proto.has_shape()) return std::nullopt;
  std::vector<Dim> dims;
  dims.reserve(static_cast<std::size_t>(proto.shape().dim_size()));
  bool has_more = false;
  for (auto& dim : *proto.mutable_shape()->mutable_dim()) {
    dims.push_back(read_dim(dim));
    has_more = has_more || dim.ByteSizeLong() != 0;
  }
  if (!has_more) proto.mutable_shape()->clear_dim();
  if (proto.shape().ByteSizeLong() == 0) proto.clear_shape();
  return dims;
}

ValueType read_type(TypeProto& proto) {
  const auto dtype = static_cast<DType>(proto.tensor_type().elem_type());
  if (!proto.has_tensor_type() || info(dtype).dtype != dtype) {
    ValueType type;
    if (proto.ByteSizeLong() == 0) return type;
    type.kind = ValueType::Kind::Other;
    type.foreign = proto.SerializeAsString();
    proto.Clear();
    return type;
  }
  TypeProto::Tensor& tensor = *proto.mutable_tensor_type();
  tensor.clear_elem_type();
  ValueType type = ValueType::tensor(dtype, read_shape(tensor));
  if (tensor.ByteSizeLong() == 0) proto.clear_tensor_type();
  return type;
}

void write_shape(const std::vector<Dim>& dims, TensorShapeProto& proto) {
  auto& out = *proto.mutable_dim();
  while (out.size() > static_cast<int>(dims.size())) out.RemoveLast();
  while (out.size() < static_cast<int>(dims.size())) out.Add();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    auto& dim = out[static_cast<int>(i)];
    if (dims[i].known()) {
      dim.set_dim_value(dims[i].value);
    } else if (!dims[i].symbol.empty()) {
      dim.set_dim_param(dims[i].symbol);
    }
  }
}

}  // namespace

void read_value_info(ValueInfoProto& proto, Value& value) {
  value.type = ValueType();
  if (proto.has_type()) value.type = read_type(*proto.mutable_type());
  if (proto.type().ByteSizeLong() == 0) proto.clear_type();
  proto.clear_name();
  value.foreign = proto.SerializeAsString();
}

void write_value_info(const Value& value, ValueInfoProto& proto) {
  parse_foreign(value.foreign, proto);
  proto.set_name(value.name);
  const ValueType& type = value.type;
  if (type.kind == ValueType::Kind::Other) {
    parse_foreign(type.foreign, *proto.mutable_type());
  } else if (type.kind == ValueType::Kind::Tensor) {
    TypeProto::Tensor& tensor = *proto.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(static_cast<std::int32_t>(type.dtype));
    if (type.shape) {
      write_shape(*type.shape, *tensor.mutable_shape());
    } else {
      tensor.clear_shape();
    }
  }
}

void parse_foreign(const std::string& foreign, google::protobuf::MessageLite& message) {
  if (!foreign.empty() && is_onnx(foreign) && !message.ParseFromString(foreign)) {
    fail(ErrorKind::Internal, "a part kept from the model file cannot be read back");
  }
}

}  // namespace quench::onnx
