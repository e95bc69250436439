// SPDX-License-Identifier: Apache-2.0
// Names, nodes and primitives of a file that is written.
#include "formats/mindir/write/writer.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "formats/mindir/file.h"
#include "formats/tidy.h"

namespace quench::mindir::write {
namespace {

constexpr int kFloat = 1, kInt64 = 7, kString = 8, kBool = 9, kTensors = 19, kTuple = 20,
              kList = 21, kNone = 25;
constexpr int kPrimitive = 1, kPrimitiveFunction = 2;

wire::Attribute named(std::string_view name, int type) {
  wire::Attribute result;
  result.set_name(std::string(name));
  result.set_type(type);
  return result;
}

void describe(wire::TensorData& to, DType dtype, const Shape& shape) {
  for (const std::int64_t dim : shape) to.add_dims(dim);
  to.set_data_type(number_of(dtype));
}

void fill(wire::TensorData& to, const Tensor& from) {
  describe(to, from.dtype(), from.shape());
  const auto bytes = from.bytes();
  to.set_raw_data(bytes.data(), bytes.size());
}

}  // namespace

wire::Attribute whole(std::string_view name, std::int64_t number) {
  wire::Attribute result = named(name, kInt64);
  result.set_i(number);
  return result;
}

wire::Attribute truth(std::string_view name, bool flag) {
  wire::Attribute result = named(name, kBool);
  result.set_i(flag ? 1 : 0);
  return result;
}

wire::Attribute real(std::string_view name, double number) {
  wire::Attribute result = named(name, kFloat);
  result.set_f(static_cast<float>(number));
  return result;
}

wire::Attribute text(std::string_view name, std::string_view letters) {
  wire::Attribute result = named(name, kString);
  result.set_s(std::string(letters));
  return result;
}

wire::Attribute tuple(std::string_view name, const Ints& numbers) {
  wire::Attribute result = named(name, kTuple);
  for (const std::int64_t each : numbers) {
    wire::Attribute* value = result.add_values();
    value->set_type(kInt64);
    value->add_ints(each);
  }
  return result;
}

Writer::Writer(const Model& model) : graph_(model.graph) {
  file_.set_ir_version("1.1");
  file_.set_producer_name("quench");
  file_.set_model_version("2.10.0");  // the release whose operators these are; it must be there
  file_.set_little_endian(true);
  file_.set_mind_ir_version(3);
  file_.mutable_graph()->set_name("main");
}

Shape Writer::shape(ValueId id) const {
  const Value& value = graph_[id];
  if (value.constant) return value.constant->shape();
  if (!value.type.shape) {
    fail(ErrorKind::Unsupported,
         "the shape of '{}' is not known, which MindIR needs; fix the inputs' shapes", value.name);
  }
  Shape result;
  for (const Dim& dim : *value.type.shape) result.push_back(dim.known() ? dim.value : -1);
  return result;
}

Shape Writer::known_shape(ValueId id) const {
  Shape result = shape(id);
  if (std::ranges::count(result, -1) > 0) {
    fail(ErrorKind::Unsupported,
         "'{}' is {}, but its sizes must be known here; fix the inputs' shapes", graph_[id].name,
         to_string(graph_[id].type));
  }
  return result;
}

std::string Writer::fresh(std::string_view stem) { return format("{}_{}", stem, ++count_); }

std::string Writer::argument(wire::Attribute value) {
  const std::string name = fresh("ValueNode");
  wire::NodeData* node = file_.mutable_graph()->add_node();
  node->set_name(name);
  node->add_output(name);
  node->set_op_type("Constant");
  value.set_name("value");
  *node->add_attribute() = std::move(value);
  return name;
}

std::string Writer::nothing() { return argument(named("value", kNone)); }

std::string Writer::tensor(const Tensor& data) {
  wire::Attribute value = named("value", kTensors);
  fill(*value.add_tensors(), data);
  return argument(std::move(value));
}

std::string Writer::name(ValueId id) {
  const auto found = names_.find(id);
  if (found != names_.end()) return found->second;
  const Tensor* data = constant(id);
  if (data == nullptr) fail(ErrorKind::Internal, "nothing makes '{}'", graph_[id].name);
  std::string made;
  if (data->size() > 1) {
    made = "main:" + graph_[id].name;
    wire::TensorData* parameter = file_.mutable_graph()->add_parameter();
    fill(*parameter, *data);
    parameter->set_name(made);
    parameter->set_ref_key(graph_[id].name);
    parameter->set_compression_type(0);
  } else {
    made = tensor(*data);
  }
  names_.emplace(id, made);
  return made;
}

/// The primitive of an operator; those without attributes are shared.
std::string Writer::reference(std::string_view op, const Attributes& attributes, bool old) {
  if (attributes.empty()) {
    const auto found = references_.find(op);
    if (found != references_.end()) return found->second;
  }
  wire::Primitive* made = file_.add_primitives();
  made->set_name(format("{}:{}", op, ++count_));
  made->set_op_type(std::string(op));
  made->set_instance_name("");
  made->set_prim_type(old ? kPrimitive : kPrimitiveFunction);
  for (const wire::Attribute& each : attributes) *made->add_attribute() = each;
  const std::string result = "REF::" + made->name();
  if (attributes.empty()) references_.emplace(std::string(op), result);
  return result;
}

wire::NodeData& Writer::push(const std::string& op, const std::vector<std::string>& inputs,
                             const std::string& output) {
  wire::NodeData* node = file_.mutable_graph()->add_node();
  for (const std::string& each : inputs) node->add_input(each);
  node->add_output(output);
  node->set_name(output);
  node->set_op_type(op);
  node->set_domain("Default/" + op.substr(op.find("::") + 2));
  return *node;
}

namespace {

bool is_tuple_op(std::string_view op) { return op == "MakeTuple" || op == "TupleGetItem"; }

/// What a node makes, for the loader: a tensor of this type.
void tell_shape(wire::NodeData& node, DType dtype, const Shape& shape) {
  wire::Attribute told = named("shape", kTensors);
  describe(*told.add_tensors(), dtype, shape);
  *node.add_attribute() = std::move(told);
}

}  // namespace

std::string Writer::between(std::string_view op, const Attributes& attributes,
                            const std::vector<std::string>& inputs, DType dtype,
                            const Shape& shape) {
  const std::string output = "main:" + fresh(op);
  wire::NodeData& node =
      push(reference(op, attributes, !attributes.empty() || is_tuple_op(op)), inputs, output);
  if (dtype != DType::Undefined) tell_shape(node, dtype, shape);
  return output;
}

std::string Writer::make_tuple(const std::vector<std::string>& inputs) {
  return between("MakeTuple", inputs, DType::Undefined, {});
}

void Writer::add(std::string_view op, const std::vector<std::string>& inputs, ValueId result) {
  add(op, {}, inputs, result);
}

void Writer::add(std::string_view op, const Attributes& attributes,
                 const std::vector<std::string>& inputs, ValueId result) {
  const std::string output = "main:" + graph_[result].name;
  wire::NodeData& node =
      push(reference(op, attributes, !attributes.empty() || is_tuple_op(op)), inputs, output);
  tell_shape(node, graph_[result].type.dtype, shape(result));
  names_.insert_or_assign(result, output);
}

void Writer::take(const std::string& given, std::int64_t index, ValueId result) {
  add("TupleGetItem", {given, argument(index)}, result);
}

void Writer::add_inputs() {
  for (const ValueId id : graph_.inputs) {
    if (graph_[id].constant) continue;
    const std::string name = "main:" + graph_[id].name;
    wire::Port* port = file_.mutable_graph()->add_input();
    port->set_name(name);
    describe(*port->add_tensor(), graph_[id].type.dtype, shape(id));
    names_.emplace(id, name);
  }
}

void Writer::add_outputs() {
  const auto port = [&](const std::string& name) {
    wire::Port* made = file_.mutable_graph()->add_output();
    made->set_name(name);
    return made;
  };
  std::vector<std::string> names;
  for (const ValueId id : graph_.outputs) names.push_back(name(id));
  if (names.size() == 1) {
    const ValueId id = graph_.outputs[0];
    describe(*port(names[0])->add_tensor(), graph_[id].type.dtype, shape(id));
    return;
  }
  wire::Port* made = port(make_tuple(names));
  for (const ValueId id : graph_.outputs) {
    describe(*made->add_tensor(), graph_[id].type.dtype, shape(id));
  }
}

void Writer::write_node(const Node& node) {
  try {
    find_write_row(node.op_type)->write(*this, node);
  } catch (Error& error) {
    throw error.in(label(graph_, node));
  }
}

wire::ModelData Writer::run() {
  add_inputs();
  for (const Node& node : graph_.nodes) write_node(node);
  add_outputs();
  return std::move(file_);
}

const WriteRow* find_write_row(std::string_view op_type) {
  for (const auto family : {layer_rows(), function_rows(), move_rows()}) {
    for (const WriteRow& row : family) {
      if (row.op_type == op_type) return &row;
    }
  }
  return nullptr;
}

}  // namespace quench::mindir::write

namespace quench::mindir {
namespace {

/// Constants that a node gives become values that are constant; shapes are known as far as can be.
Model prepared(const Model& model) {
  Model typed = model;
  formats::lift_constants(typed.graph);
  (void)infer_types(typed);
  return typed;
}

}  // namespace

void expect_writable(const Model& model) {
  std::map<std::string, int> missing;
  for (const Node& node : model.graph.nodes) {
    const bool known = node.domain.empty() && (node.op_type == "Constant" ||
                                               write::find_write_row(node.op_type) != nullptr);
    if (!known) ++missing[node.op_type];
  }
  if (missing.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, count] : missing) names.push_back(format("{} ({})", name, count));
  fail(ErrorKind::Unsupported,
       "these operators have no counterpart in MindIR that is written: {}; write ONNX instead",
       fmt::join(names, ", "));
}

std::string write_bytes(const Model& model) {
  expect_writable(model);
  const Model typed = prepared(model);
  std::string bytes;
  const wire::ModelData file = write::Writer(typed).run();
  constexpr std::size_t kMost = (std::size_t{1} << 31) - 1;
  if (file.ByteSizeLong() > kMost || !file.SerializeToString(&bytes)) {
    fail(ErrorKind::Unsupported, "the model has more than 2 GB, which a MindIR file cannot hold");
  }
  return bytes;
}

std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path) {
  const std::string bytes = write_bytes(model);
  (void)read_bytes(std::as_bytes(std::span(bytes)), path);
  auto file = std::make_unique<AtomicFile>(path);
  file->write(bytes);
  return file;
}

}  // namespace quench::mindir
