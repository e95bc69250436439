// SPDX-License-Identifier: Apache-2.0
// Attributes of nodes, with the tensors and graphs inside them.
#include <type_traits>

#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

/// AttributeProto.type.
enum Type : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kLastKnown = 14,
};

/// Files of the first IR versions have no type: it follows from the field that is set.
std::int32_t type_of(const AttributeProto& proto) {
  if (proto.type() != kUndefined) return proto.type();
  if (proto.has_f()) return kFloat;
  if (proto.has_i()) return kInt;
  if (proto.has_s()) return kString;
  if (proto.has_t()) return kTensor;
  if (proto.has_g()) return kGraph;
  if (proto.floats_size() != 0) return kFloats;
  if (proto.ints_size() != 0) return kInts;
  if (proto.strings_size() != 0) return kStrings;
  if (proto.tensors_size() != 0) return kTensors;
  return proto.graphs_size() != 0 ? kGraphs : kUndefined;
}

/// Reads one tensor and leaves in the message what a rewrite needs: its name, form and so on.
std::optional<Tensor> take_tensor(TensorProto& proto, Source& source) {
  auto read = read_tensor(proto, source);
  if (!read) return std::nullopt;
  clear_data(proto);
  if (read->form != ConstantForm::Raw) {
    proto.set_quench_form(static_cast<std::int32_t>(read->form));
  }
  return std::move(read->tensor);
}

/// A tensor of a type Quench does not know keeps the attribute as it is.
Attribute::Data read_one_tensor(AttributeProto& proto, Source& source) {
  auto tensor = take_tensor(*proto.mutable_t(), source);
  if (tensor) return std::move(*tensor);
  restore_data(*proto.mutable_t(), source);
  return std::monostate();
}

Attribute::Data read_tensors(AttributeProto& proto, Source& source) {
  std::vector<Tensor> tensors;
  for (TensorProto& each : *proto.mutable_tensors()) {
    auto tensor = take_tensor(each, source);
    if (!tensor) {
      fail(ErrorKind::Unsupported, "a list of tensors has the element type {}, which is not known",
           each.data_type());
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Attribute::Data read_graphs(AttributeProto& proto, const Scope& scope, Source& source) {
  std::vector<GraphBox> graphs;
  for (GraphProto& each : *proto.mutable_graphs()) {
    graphs.emplace_back(read_graph(each, &scope, source));
  }
  proto.clear_graphs();
  return graphs;
}

Attribute::Data read_data(AttributeProto& proto, std::int32_t type, const Scope& scope,
                          Source& source) {
  switch (type) {
    case kFloat:
      return proto.f();
    case kInt:
      return std::int64_t{proto.i()};
    case kString:
      return proto.s();
    case kTensor:
      return read_one_tensor(proto, source);
    case kGraph: {
      GraphBox graph(read_graph(*proto.mutable_g(), &scope, source));
      proto.clear_g();
      return graph;
    }
    case kFloats:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case kInts:
      return std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end());
    case kStrings:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    case kTensors:
      return read_tensors(proto, source);
    case kGraphs:
      return read_graphs(proto, scope, source);
    default:
      return std::monostate();
  }
}

void clear_plain_data(AttributeProto& proto) {
  proto.clear_f();
  proto.clear_i();
  proto.clear_s();
  proto.clear_floats();
  proto.clear_ints();
  proto.clear_strings();
}

/// Tensors and graphs in a field that the type does not name would be lost.
void check_unread(const AttributeProto& proto, std::int32_t type) {
  if ((proto.has_t() && type != kTensor) || (proto.has_g() && type != kGraph) ||
      (proto.tensors_size() != 0 && type != kTensors) ||
      (proto.graphs_size() != 0 && type != kGraphs)) {
    fail(ErrorKind::BadModel, "its type is {}, but it holds a tensor or a graph in another field",
         type);
  }
}

class DataWriter {
 public:
  DataWriter(Store& store, AttributeProto& proto) : store_(store), proto_(proto) {}

  void operator()(std::monostate) {}
  void operator()(std::int64_t value) { type(kInt).set_i(value); }
  void operator()(float value) { type(kFloat).set_f(value); }
  void operator()(const std::string& value) { type(kString).set_s(value); }
  void operator()(const Tensor& value) { write(value, *type(kTensor).mutable_t()); }
  void operator()(const GraphBox& value) { write_graph(*value, store_, *type(kGraph).mutable_g()); }
  void operator()(const std::vector<std::int64_t>& value) {
    type(kInts).mutable_ints()->Assign(value.begin(), value.end());
  }
  void operator()(const std::vector<float>& value) {
    type(kFloats).mutable_floats()->Assign(value.begin(), value.end());
  }
  void operator()(const std::vector<std::string>& value) {
    type(kStrings);
    for (const std::string& each : value) proto_.add_strings(each);
  }
  void operator()(const std::vector<Tensor>& value) {
    auto& out = *type(kTensors).mutable_tensors();
    if (out.size() != static_cast<int>(value.size())) out.Clear();
    while (out.size() < static_cast<int>(value.size())) out.Add();
    for (std::size_t i = 0; i < value.size(); ++i) write(value[i], out[static_cast<int>(i)]);
  }
  void operator()(const std::vector<GraphBox>& value) {
    type(kGraphs);
    for (const GraphBox& each : value) write_graph(*each, store_, *proto_.add_graphs());
  }

 private:
  AttributeProto& type(Type value) {
    proto_.set_type(value);
    return proto_;
  }
  void write(const Tensor& tensor, TensorProto& out) {
    const auto form = static_cast<ConstantForm>(out.quench_form());
    out.clear_quench_form();
    store_.write(tensor, form, out);
  }

  Store& store_;
  AttributeProto& proto_;
};

}  // namespace

Attribute read_attribute(AttributeProto& proto, const Scope& scope, Source& source) {
  Attribute attribute;
  attribute.name = proto.name();
  try {
    const std::int32_t type = type_of(proto);
    check_unread(proto, type);
    attribute.reference = proto.ref_attr_name();
    if (attribute.reference.empty()) attribute.data = read_data(proto, type, scope, source);
  } catch (Error& error) {
    throw error.in(format("attribute '{}'", attribute.name));
  }
  proto.clear_name();
  proto.clear_ref_attr_name();
  if (!std::holds_alternative<std::monostate>(attribute.data)) {
    proto.clear_type();
    clear_plain_data(proto);
    if (proto.has_t() && proto.t().ByteSizeLong() == 0) proto.clear_t();
  }
  attribute.foreign = proto.SerializeAsString();
  return attribute;
}

void write_attribute(const Attribute& attribute, Store& store, AttributeProto& proto) {
  parse_foreign(attribute.foreign, proto);
  proto.set_name(attribute.name);
  if (!attribute.reference.empty()) proto.set_ref_attr_name(attribute.reference);
  std::visit(DataWriter(store, proto), attribute.data);
}

}  // namespace quench::onnx
