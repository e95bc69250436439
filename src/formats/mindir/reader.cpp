// SPDX-License-Identifier: Apache-2.0
// Names, nodes and calls of MindIR graphs.
#include "formats/mindir/reader.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"
#include "formats/tidy.h"

namespace quench::mindir {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::int64_t kMaxNodes = 1 << 20;
constexpr std::string_view kReference = "REF::";

/// Operators that only order others, or put tensors into tuples and take them out.
bool is_plumbing(std::string_view type) {
  return type == "Load" || type == "UpdateState" || type == "Depend" || type == "MakeTuple" ||
         type == "TupleGetItem" || type == "Constant" || type == "Return" || type == "MakeList" ||
         type == "make_tuple" || type == "tuple_getitem";
}

}  // namespace

std::string own_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon + 1 == name.size()) return std::string(name);
  return std::string(name.substr(colon + 1));
}

Reader::Reader(const wire::ModelData& model, std::string path, Graph& graph)
    : model_(model), path_(std::move(path)), make_(graph), nodes_left_(kMaxNodes) {
  for (const wire::Primitive& each : model.primitives()) primitives_.emplace(each.name(), &each);
  for (const wire::GraphData& each : model.functions()) functions_.emplace(each.name(), &each);
  const auto count = [&](const wire::GraphData& each) {
    for (const wire::NodeData& node : each.node()) {
      for (const std::string& input : node.input()) ++uses_[input];
    }
    for (const wire::Port& output : each.output()) ++uses_[output.name()];
  };
  count(model.graph());
  for (const wire::GraphData& each : model.functions()) count(each);
}

const wire::GraphData* Reader::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

const wire::Primitive* Reader::primitive(std::string_view name) const {
  const auto found = primitives_.find(name);
  return found == primitives_.end() ? nullptr : found->second;
}

void Reader::expect_known(const wire::GraphData& graph, std::map<std::string, int>& missing) const {
  for (const wire::NodeData& node : graph.node()) {
    std::string type = node.op_type();
    if (type.starts_with(kReference)) {
      const std::string name = type.substr(kReference.size());
      if (function(name) != nullptr) continue;
      const wire::Primitive* found = primitive(name);
      type = found == nullptr ? name : found->op_type();
    }
    if (!is_plumbing(type) && find_row(type) == nullptr) ++missing[type];
  }
}

void Reader::expect_known() const {
  std::map<std::string, int> missing;
  expect_known(model_.graph(), missing);
  for (const wire::GraphData& each : model_.functions()) expect_known(each, missing);
  if (missing.empty()) return;
  const std::vector<std::string> names = formats::counted(missing);
  const bool quantised = missing.contains("QuantDTypeCast") || missing.contains("DynamicQuant");
  if (quantised) {
    fail(ErrorKind::Unsupported,
         "the model is quantised by converter_lite ({}), whose activations are not read; take the "
         "float model and quantise that",
         fmt::join(names, ", "));
  }
  fail(ErrorKind::Unsupported,
       "the model uses operators of MindIR that are not known: {}; cut the model before them, or "
       "export it to ONNX (mindspore.export) (`quench list operators --format mindir`)",
       fmt::join(names, ", "));
}

Entry Reader::call(const wire::GraphData& graph, std::vector<Entry> arguments, int depth) {
  if (depth > kMaxDepth) {
    fail(ErrorKind::BadModel,
         "graphs call graphs more than {} deep, or themselves: loops are not read; export the "
         "network for inference",
         kMaxDepth);
  }
  if (static_cast<std::size_t>(graph.input_size()) > arguments.size()) {
    fail(ErrorKind::BadModel, "graph '{}' takes {} inputs, but is called with {}", graph.name(),
         graph.input_size(), arguments.size());
  }
  Entries names;
  for (int i = 0; i < graph.input_size(); ++i) {
    names.insert_or_assign(graph.input(i).name(), arguments[static_cast<std::size_t>(i)]);
  }
  add_parameters(graph, names);
  return evaluate(graph, std::move(names), depth);
}

Entry Reader::translate(const wire::NodeData& node, std::string_view type, Entries attributes,
                        std::vector<Entry> inputs) {
  const OpRow* row = find_row(type);
  if (row == nullptr) fail(ErrorKind::Unsupported, "the operator {} is not known", type);
  const std::string& name = node.output_size() > 0 ? node.output(0) : node.name();
  make_.name_after(row->name, own_name(name));
  Op op(make_, row->name, row->as, std::move(inputs), std::move(attributes));
  op.only_reader = node.input_size() > 0 && uses_.at(node.input(0)) == 1;
  row->read(op);
  Entry result = op.result();
  // What the file says of the result's shape.
  for (const wire::Attribute& each : node.attribute()) {
    if (each.name() != "shape" || each.tensors_size() != 1) continue;
    const auto& dims = each.tensors(0).dims();
    result.shape = Shape(dims.begin(), dims.end());
  }
  return result;
}

Entry Reader::evaluate(const wire::NodeData& node, const Entries& names, int depth) {
  std::vector<Entry> inputs;
  for (const std::string& each : node.input()) {
    const auto found = names.find(each);
    if (found == names.end()) {
      fail(ErrorKind::BadModel, "it reads '{}', but nothing before it makes that", each);
    }
    inputs.push_back(found->second);
  }
  std::string type = node.op_type();
  Entries attributes = entries_of(node.attribute());
  if (type == "Constant") {
    const auto found = attributes.find("value");
    return found == attributes.end() ? Entry{} : found->second;
  }
  if (type.starts_with(kReference)) {
    const std::string name = type.substr(kReference.size());
    if (const wire::GraphData* called = function(name)) {
      return call(*called, std::move(inputs), depth + 1);
    }
    if (const wire::Primitive* found = primitive(name)) {
      type = found->op_type();
      attributes = entries_of(found->attribute());
    }
  }
  if (type == "UpdateState") return {};
  if (type == "MakeTuple" || type == "MakeList" || type == "make_tuple") {
    Entry tuple;
    tuple.kind = Entry::Kind::List;
    tuple.list = std::move(inputs);
    return tuple;
  }
  if (is_plumbing(type) && inputs.empty()) fail(ErrorKind::BadModel, "it has no inputs");
  if (type == "TupleGetItem" || type == "tuple_getitem") {
    const std::int64_t index = inputs.size() < 2 ? -1 : inputs[1].number;
    if (inputs[0].kind != Entry::Kind::List || index < 0 || index >= std::ssize(inputs[0].list)) {
      fail(ErrorKind::Unsupported, "it takes element {} of what is no tuple so long", index);
    }
    return inputs[0].list[static_cast<std::size_t>(index)];
  }
  if (is_plumbing(type)) return inputs[0];
  return translate(node, type, std::move(attributes), std::move(inputs));
}

Entry Reader::evaluate(const wire::GraphData& graph, Entries names, int depth) {
  for (const wire::NodeData& node : graph.node()) {
    if (--nodes_left_ < 0) fail(ErrorKind::BadModel, "its graphs call each other too often");
    const std::string& name = node.output_size() > 0 ? node.output(0) : node.name();
    try {
      Entry made = evaluate(node, names, depth);
      if (!name.empty()) names.insert_or_assign(name, std::move(made));
    } catch (Error& error) {
      throw error.in(format("node '{}' ({})", own_name(name), node.op_type()));
    }
  }
  if (graph.output_size() == 0) fail(ErrorKind::BadModel, "graph '{}' has no output", graph.name());
  Entry result;
  result.kind = Entry::Kind::List;
  for (const wire::Port& output : graph.output()) {
    const auto found = names.find(output.name());
    if (found == names.end()) {
      fail(ErrorKind::BadModel, "nothing makes the output '{}'", output.name());
    }
    result.list.push_back(found->second);
  }
  return graph.output_size() == 1 ? result.list[0] : result;
}

void Reader::add_inputs(const wire::GraphData& graph, Entries& names) {
  for (const wire::Port& input : graph.input()) {
    if (input.tensor_size() == 0) continue;
    const wire::TensorData& tensor = input.tensor(0);
    const DType dtype = dtype_of(tensor.data_type());
    if (dtype == DType::Undefined || dtype == DType::String) {
      fail(ErrorKind::Unsupported, "the input '{}' has elements of type {}, which is not read",
           input.name(), tensor.data_type());
    }
    std::vector<Dim> dims;
    Entry entry;
    entry.shape.emplace();
    for (const std::int64_t size : tensor.dims()) {
      Dim dim{.value = size < 0 ? -1 : size, .symbol = {}};
      if (size < 0) dim.symbol = dims.empty() ? "batch" : format("dim_{}", dims.size());
      dims.push_back(std::move(dim));
      entry.shape->push_back(size);
    }
    entry.kind = Entry::Kind::Value;
    entry.value = make_.graph().add_fresh(own_name(input.name()), ValueType::tensor(dtype, dims));
    make_.graph().inputs.push_back(entry.value);
    names.insert_or_assign(input.name(), std::move(entry));
  }
}

void Reader::add_parameters(const wire::GraphData& graph, Entries& names) {
  for (const wire::TensorData& each : graph.parameter()) {
    try {
      const Tensor data = parameter(each);
      Entry entry;
      entry.kind = Entry::Kind::Value;
      entry.shape = data.shape();
      const std::string name = own_name(each.name());
      make_.name_after("parameter", name);
      entry.value = make_.graph().add_constant(name.empty() ? "parameter" : name, data);
      entry.value = dequantize(make_, each, entry.value);
      names.insert_or_assign(each.name(), std::move(entry));
    } catch (Error& error) {
      throw error.in(format("parameter '{}'", own_name(each.name())));
    }
  }
}

Tensor Reader::parameter(const wire::TensorData& data) const {
  if (data.compression_type() != 0) {
    fail(
        ErrorKind::Unsupported,
        "it is compressed (form {}), which is not read; convert the model with enable_encode=false",
        data.compression_type());
  }
  if (!data.has_external_data() || data.external_data().location().empty()) {
    return tensor_of(data);
  }
  const wire::External& place = data.external_data();
  const auto file = MappedFile::open(parameter_file(path_, place.location()));
  const auto bytes = file->bytes();
  const bool sound = place.offset() >= 0 && place.length() >= 0 &&
                     static_cast<std::uint64_t>(place.offset()) <= bytes.size() &&
                     static_cast<std::uint64_t>(place.length()) <=
                         bytes.size() - static_cast<std::uint64_t>(place.offset());
  if (!sound) {
    fail(ErrorKind::BadModel,
         "it lies at {} in '{}' and has {} bytes, past the end of the file; is that file the one "
         "of another model?",
         place.offset(), place.location(), place.length());
  }
  const auto part = bytes.subspan(static_cast<std::size_t>(place.offset()),
                                  static_cast<std::size_t>(place.length()));
  return tensor_of(data, {reinterpret_cast<const char*>(part.data()), part.size()});
}

/// Under the names that the file gives them.
void Reader::add_outputs(const Entry& result, const wire::GraphData& graph) {
  std::vector<Entry> all = result.kind == Entry::Kind::List ? result.list : std::vector{result};
  Graph& to = make_.graph();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Entry each = all[i];
    if (each.kind == Entry::Kind::List && !each.list.empty()) each = Entry(each.list[0]);
    if (each.kind != Entry::Kind::Value && each.kind != Entry::Kind::Tensor) continue;
    ValueId id = each.kind == Entry::Kind::Tensor ? make_.constant(each.tensor) : each.value;
    const bool input = std::ranges::find(to.inputs, id) != to.inputs.end();
    const bool taken = std::ranges::find(to.outputs, id) != to.outputs.end();
    make_.name_after("output", "output");
    if (input || taken || to[id].constant) id = make_.node("Identity", {id});
    // Several outputs may lie in one tuple, which has one name.
    const bool named = static_cast<std::size_t>(graph.output_size()) == all.size();
    if (named) make_.rename(id, own_name(graph.output(static_cast<int>(i)).name()));
    to.outputs.push_back(id);
  }
  if (to.outputs.empty()) fail(ErrorKind::BadModel, "the model has no outputs");
}

void Reader::run() {
  expect_known();
  const wire::GraphData& graph = model_.graph();
  make_.graph().name = graph.name().empty() ? "main" : graph.name();
  Entries names;
  add_inputs(graph, names);
  add_parameters(graph, names);
  add_outputs(evaluate(graph, std::move(names), 0), graph);
}

}  // namespace quench::mindir
