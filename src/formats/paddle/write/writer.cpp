// SPDX-License-Identifier: Apache-2.0
// A Paddle program under construction.
#include "formats/paddle/write/writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/format.h"
#include "formats/paddle/types.h"
#include "formats/paddle/write/originals.h"

namespace quench::paddle::write {
namespace {

/// One message a kind of attribute.
void fill(OpDesc::Attr& attr, const AttrValue& value) {
  struct Fill {
    OpDesc::Attr& attr;
    void operator()(bool v) const { attr.set_type(BOOLEAN), attr.set_b(v); }
    void operator()(std::int32_t v) const { attr.set_type(INT), attr.set_i(v); }
    void operator()(std::int64_t v) const { attr.set_type(LONG), attr.set_l(v); }
    void operator()(float v) const { attr.set_type(FLOAT), attr.set_f(v); }
    void operator()(const std::string& v) const { attr.set_type(STRING), attr.set_s(v); }
    void operator()(const Ints& v) const {
      attr.set_type(INTS), attr.mutable_ints()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<float>& v) const {
      attr.set_type(FLOATS), attr.mutable_floats()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<std::int64_t>& v) const {
      attr.set_type(LONGS), attr.mutable_longs()->Add(v.begin(), v.end());
    }
  };
  std::visit(Fill{attr}, value);
}

void add_argument(OpDesc::Var& var, const char* argument, const Names& names) {
  var.set_parameter(argument);
  for (const std::string& name : names) var.add_arguments(name);
}

void set_type(VarDesc& var, DType dtype, const std::optional<std::vector<Dim>>& shape) {
  var.mutable_type()->set_type(VarType::LOD_TENSOR);
  VarType::TensorDesc& tensor = *var.mutable_type()->mutable_lod_tensor()->mutable_tensor();
  const TypeRow* row = type_row(dtype);
  tensor.set_data_type(row == nullptr ? type_row(DType::Float32)->number : row->number);
  if (!shape) return;
  for (const Dim& dim : *shape) tensor.add_dims(dim.known() ? dim.value : -1);
}

std::vector<Dim> dims_of(const Shape& shape) {
  std::vector<Dim> dims;
  for (const std::int64_t size : shape) dims.push_back({.value = size, .symbol = {}});
  return dims;
}

/// A parameter that is another tensor than the original's is declared anew.
void declare_parameter(VarDesc& var, const Tensor& tensor) {
  const auto& dims = var.type().lod_tensor().tensor().dims();
  const bool same =
      std::equal(dims.begin(), dims.end(), tensor.shape().begin(), tensor.shape().end());
  if (same && var.persistable()) return;
  // Integer weights are declared as the floats they stand for, as Paddle's own tools do.
  const bool weight = tensor.dtype() == DType::Int8;
  var.clear_type();
  set_type(var, weight ? DType::Float32 : tensor.dtype(), dims_of(tensor.shape()));
  var.set_persistable(true);
  var.set_is_parameter(true);
  var.set_stop_gradient(true);
}

void add_endpoint(BlockDesc& block, const char* name, VarType::Type type) {
  VarDesc& var = *block.add_vars();
  var.set_name(name);
  var.mutable_type()->set_type(type);
  var.set_persistable(true);
}

}  // namespace

Op& Op::in(const char* argument, const Names& names) {
  add_argument(*desc_.add_inputs(), argument, names);
  return *this;
}

Op& Op::out(const char* argument, const Names& names) {
  add_argument(*desc_.add_outputs(), argument, names);
  return *this;
}

Op& Op::set(const char* name, const AttrValue& value) {
  OpDesc::Attr& attr = *desc_.add_attrs();
  attr.set_name(name);
  fill(attr, value);
  return *this;
}

Op& Op::set_block(const char* name, std::int32_t index) {
  OpDesc::Attr& attr = *desc_.add_attrs();
  attr.set_name(name);
  attr.set_type(BLOCK);
  attr.set_block_idx(index);
  return *this;
}

Writer::Writer(const Graph& graph, Inner inner) : graph_(graph), inner_(inner) {
  BlockDesc& block = *program_.add_blocks();
  block.set_idx(0);
  block.set_parent_idx(-1);
  name_values();
}

void Writer::name_values() {
  for (const Value& value : graph_.values()) {
    if (!value.constant && !value.captured) types_.emplace(value.name, value.type);
  }
}

std::string Writer::variable(ValueId value) {
  const auto known = names_.find(value);
  if (known != names_.end()) return known->second;
  const Value& what = graph_[value];
  if (what.captured) return outer_->outer_variable(what.name);
  std::string name = what.constant ? parameter(what.name, *what.constant) : what.name;
  return names_[value] = std::move(name);
}

std::string Writer::outer_variable(const std::string& name) {
  const ValueId here = graph_.find(name);
  return here == kNoValue ? outer_->outer_variable(name) : variable(here);
}

void Writer::call(ValueId value, const std::string& name) {
  if (const Tensor* tensor = graph_.constant(value)) {
    root().parameters_.emplace(name, *tensor);
  } else {
    types_.erase(graph_[value].name);
    types_.emplace(name, graph_[value].type);
  }
  names_[value] = name;
}

void Writer::make(ValueId constant) {
  const Value& value = graph_[constant];
  types_.emplace(value.name, ValueType::of(*value.constant));
  names_[constant] = value.name;
}

std::string Writer::derived(ValueId constant, std::string_view stem, Tensor tensor) {
  const auto known = derived_.find(constant);
  if (known != derived_.end()) return known->second;
  return derived_[constant] = parameter(stem, std::move(tensor));
}

std::string Writer::restored(const std::string& name, const Tensor& tensor) {
  const auto known = parameters().find(name);
  const bool same = known != parameters().end() && known->second.shape() == tensor.shape() &&
                    std::ranges::equal(known->second.bytes(), tensor.bytes());
  return same ? name : parameter(name, tensor);
}

std::string Writer::free_name(std::string_view stem) const {
  std::string name(stem);
  for (int i = 1; taken(name); ++i) {
    name = format("{}_{}", stem, i);
  }
  return name;
}

std::string Writer::parameter(std::string_view stem, Tensor tensor) {
  const std::string name = free_name(stem);
  root().parameters_.emplace(name, std::move(tensor));
  return name;
}

std::string Writer::temporary(std::string_view stem, const ValueType& like) {
  const std::string name = free_name(stem);
  types_.emplace(name, like);
  return name;
}

Op Op::named(OpDesc& desc, std::string_view type) {
  desc.set_type(std::string(type));
  // Paddle's own tools ask every operator whether it is of the forward pass.
  return Op(desc).set("op_role", 0);
}

Op Writer::op(const char* type) { return Op::named(*desc().add_ops(), type); }

void Writer::note_reach(const std::string& variable, float reach) {
  constexpr const char* kThreshold = "out_threshold";
  for (OpDesc& op : *desc().mutable_ops()) {
    const bool makes = std::ranges::any_of(op.outputs(), [&](const OpDesc::Var& output) {
      return std::ranges::find(output.arguments(), variable) != output.arguments().end();
    });
    const bool says = std::ranges::any_of(
        op.attrs(), [&](const OpDesc::Attr& attr) { return attr.name() == kThreshold; });
    if (makes && !says && op.type() != "feed") Op(op).set(kThreshold, reach);
  }
}

void Writer::copy(const BlockDesc& block, const OpDesc& op,
                  const std::map<std::string, std::string>& inputs,
                  const std::map<std::string, std::string>& outputs) {
  OpDesc& desc = *this->desc().add_ops();
  desc = op;
  const auto rename = [&](const auto& names, std::string& name) {
    const auto found = names.find(name);
    if (found == names.end()) return false;
    name = found->second;
    return true;
  };
  for (OpDesc::Var& var : *desc.mutable_inputs()) {
    for (std::string& name : *var.mutable_arguments()) rename(inputs, name);
  }
  for (OpDesc::Var& var : *desc.mutable_outputs()) {
    for (std::string& name : *var.mutable_arguments()) {
      // What is written in place is called as where it is read.
      if (rename(outputs, name) || rename(inputs, name)) continue;
      for (const VarDesc& known : block.vars()) {
        if (known.name() == name) copied_.emplace(name, known);
      }
    }
  }
}

void Writer::port(const OpDesc* original, const char* type, const std::string& name,
                  std::int32_t column) {
  if (original != nullptr) {
    *program_.mutable_blocks(0)->add_ops() = *original;
    return;
  }
  const bool feeds = std::string_view(type) == "feed";
  op(type).in("X", feeds ? type : name).out("Out", feeds ? name : type).set("col", column);
}

void Writer::feed(const Originals& originals) {
  add_endpoint(*program_.mutable_blocks(0), "feed", VarType::FEED_MINIBATCH);
  std::int32_t column = 0;
  for (const ValueId input : graph_.inputs) {
    if (graph_.constant(input) != nullptr) continue;
    const std::string name = variable(input);
    port(originals.port("feed", name), "feed", name, column++);
  }
}

void Writer::fetch(const Originals& originals) {
  add_endpoint(*program_.mutable_blocks(0), "fetch", VarType::FETCH_LIST);
  std::int32_t column = 0;
  for (const ValueId output : graph_.outputs) {
    const std::string name = variable(output);
    port(originals.port("fetch", name), "fetch", name, column++);
  }
}

void Writer::declare(BlockDesc& block, const std::string& name,
                     const std::map<std::string, VarDesc>& known) const {
  VarDesc& var = *block.add_vars();
  const auto original = known.find(name);
  const auto parameter = parameters().find(name);
  if (original != known.end()) {
    var = original->second;
  } else {
    var.set_name(name);
  }
  if (parameter != parameters().end()) {
    declare_parameter(var, parameter->second);
  } else if (original == known.end()) {
    const auto type = types_.find(name);
    set_type(var, type == types_.end() ? DType::Float32 : type->second.dtype,
             type == types_.end() ? std::nullopt : type->second.shape);
    var.set_persistable(false);
  }
}

ProgramDesc Writer::take(const Originals& originals) {
  BlockDesc& block = *program_.mutable_blocks(0);
  std::map<std::string, VarDesc> known = copied_;
  if (originals.program().blocks_size() > 0) {
    for (const VarDesc& var : originals.program().blocks(0).vars()) known.emplace(var.name(), var);
    program_.mutable_version()->CopyFrom(originals.program().version());
    program_.mutable_op_version_map()->CopyFrom(originals.program().op_version_map());
  } else {
    program_.mutable_version()->set_version(0);
  }
  std::set<std::string> used = variables_of(block);
  // What only inner blocks have of parameters is declared here, too.
  for (const auto& [name, tensor] : parameters_) used.insert(name);
  for (const std::string& name : used) {
    if (name != "feed" && name != "fetch") declare(block, name, known);
  }
  return std::move(program_);
}

std::int64_t NodeWriter::rank(std::size_t input) const {
  if (const Tensor* tensor = constant(input)) return tensor->rank();
  const ValueType& known = type(input);
  if (!known.shape) refuse("the rank of what it reads is not known");
  return static_cast<std::int64_t>(known.shape->size());
}

std::string NodeWriter::between(std::string_view suffix) const {
  const Value& made = graph()[node.outputs[0]];
  return writer.temporary(format("{}.{}", made.name, suffix), made.type);
}

std::optional<std::vector<std::int64_t>> NodeWriter::ints(const char* attribute,
                                                          std::size_t input) const {
  if (node.find(attribute) != nullptr) return node.get_ints(attribute);
  if (!has(input)) return std::nullopt;
  const Tensor* tensor = constant(input);
  if (tensor == nullptr) refuse(format("its {} are computed while it runs", attribute));
  const Tensor wide = convert(*tensor, DType::Int64);
  const std::span<const std::int64_t> values = wide.data<std::int64_t>();
  return std::vector<std::int64_t>(values.begin(), values.end());
}

float NodeWriter::number(std::size_t input) const {
  const Tensor* tensor = constant(input);
  if (tensor == nullptr || tensor->size() != 1) refuse("one of its numbers is not a constant");
  return to_float(*tensor)[0];
}

void NodeWriter::refuse(std::string_view reason) const {
  fail(ErrorKind::Unsupported, "{} ({}) cannot be written as Paddle: {}", label(graph(), node),
       node.op_type, reason);
}

std::set<std::string> variables_of(const BlockDesc& block) {
  std::set<std::string> used;
  for (const OpDesc& op : block.ops()) {
    for (const auto* arguments : {&op.inputs(), &op.outputs()}) {
      for (const OpDesc::Var& var : *arguments) {
        used.insert(var.arguments().begin(), var.arguments().end());
      }
    }
  }
  return used;
}

Ints narrow(const std::vector<std::int64_t>& values) {
  Ints result;
  for (const std::int64_t value : values) {
    constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();
    result.push_back(static_cast<std::int32_t>(std::clamp(value, kLow, kHigh)));
  }
  return result;
}

}  // namespace quench::paddle::write
