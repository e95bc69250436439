// SPDX-License-Identifier: Apache-2.0
// Walks a model and lets each operator's rule say what its outputs are.
#include <algorithm>
#include <array>

#include "ops/functions.h"
#include "ops/ops.h"
#include "ops/scope.h"

namespace quench {
namespace ops {
namespace {

bool same_dtype(const ValueType& declared, const ValueType& found) {
  return declared.dtype == found.dtype || declared.dtype == DType::Undefined ||
         found.dtype == DType::Undefined;
}

/// Whether the shape of `found` may be said of a value that the file declares as `declared`.
bool same_shape(const ValueType& declared, const ValueType& found) {
  if (!declared.shape || !found.shape) return true;
  if (declared.shape->size() != found.shape->size()) return false;
  return std::equal(declared.shape->begin(), declared.shape->end(), found.shape->begin(),
                    [](const Dim& a, const Dim& b) { return unify(a, b).has_value(); });
}

enum class Trust { Full, FillOnly };

/// Fills what `type` leaves open from `other`, where the two do not clash.
void complete(ValueType& type, const ValueType& other, Trust trust = Trust::Full) {
  if (type.dtype == DType::Undefined) type.dtype = other.dtype;
  if (!other.shape) return;
  if (!type.shape) {
    type.shape = other.shape;
    return;
  }
  if (type.shape->size() != other.shape->size()) return;
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    Dim& dim = (*type.shape)[i];
    if (trust == Trust::FillOnly && !dim.symbol.empty()) continue;
    if (const auto both = unify(dim, (*other.shape)[i])) dim = *both;
  }
}

/// Takes over what the enclosing graphs know of the values that this one borrows.
void capture(Scope& scope) {
  for (std::size_t i = 0; i < scope.graph.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!scope.graph[id].captured) continue;
    for (Scope* outer = scope.outer; outer != nullptr; outer = outer->outer) {
      const ValueId source = outer->graph.find(scope.graph[id].name);
      if (source == kNoValue || outer->graph[source].captured) continue;
      scope.graph[id].type = outer->graph[source].type;
      scope.facts[i] = outer->fact(source);
      break;
    }
  }
}

/// Says what contradicts what.
std::string contradiction(const Value& value, const ValueType& found) {
  return format("the file declares value '{}' as {}, but it is {}", value.name,
                to_string(value.type), to_string(found));
}

void note_constants(Scope& scope) {
  for (std::size_t i = 0; i < scope.graph.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const Tensor* constant = scope.graph.constant(id);
    if (constant == nullptr || !constant->defined()) continue;
    scope.facts[i].constant = constant;
    refine(scope, id, ValueType::of(*constant));
  }
}

void check_input_count(const Node& node, const OpInfo& op) {
  const auto count = static_cast<int>(node.inputs.size());
  if (count >= op.min_inputs && (op.max_inputs < 0 || count <= op.max_inputs)) return;
  const std::string wanted = op.max_inputs < 0 ? format("at least {}", op.min_inputs)
                             : op.min_inputs == op.max_inputs
                                 ? format("{}", op.min_inputs)
                                 : format("{} to {}", op.min_inputs, op.max_inputs);
  fail(ErrorKind::BadModel, "{} takes {} inputs, but has {}", op.name, wanted, count);
}

/// How many of a node's inputs may not be left out. Zero points of ONNX Runtime's operators may, in
/// the middle, and the first inputs of loops.
std::size_t needed_inputs(const Node& node, const OpInfo& op) {
  if (op.name == "Loop" || op.name == "Scan") return 0;
  if (op.max_inputs < 0 && op.domain.empty()) return node.inputs.size();
  return static_cast<std::size_t>(op.domain.empty() ? op.min_inputs : std::min(op.min_inputs, 1));
}

/// An empty name leaves out what is optional; what every version asks for, and the first result of
/// most operators, is not.
void check_left_out(const Node& node, const OpInfo& op) {
  static constexpr std::array<std::string_view, 7> kOptionalResults = {"RNN",  "GRU",  "LSTM", "If",
                                                                       "Loop", "Scan", "Split"};
  for (std::size_t i = 0; i < needed_inputs(node, op); ++i) {
    if (node.inputs[i] != kNoValue) continue;
    fail(ErrorKind::BadModel, "input {} of {} is left out (its name is empty), but it needs it", i,
         op.name);
  }
  if (std::ranges::find(kOptionalResults, op.name) != kOptionalResults.end()) return;
  if (node.outputs.empty() || node.outputs[0] == kNoValue) {
    fail(ErrorKind::BadModel, "{} has no name for its result; export the model again", op.name);
  }
}

void check_output_count(const Node& node, const OpInfo& op) {
  auto count = static_cast<int>(node.outputs.size());
  while (count > 0 && node.outputs[static_cast<std::size_t>(count) - 1] == kNoValue) --count;
  const int most = max_outputs(op);
  if (most < 0 || count <= most) return;
  fail(ErrorKind::BadModel, "{} makes {} output{}, but the node has {}", op.name, most,
       most == 1 ? "" : "s", count);
}

void infer_node(Scope& scope, Node& node) {
  try {
    // Rules hold on to their inputs' shapes while they set outputs.
    for (const ValueId id : node.outputs) {
      if (id != kNoValue && std::ranges::count(node.inputs, id) > 0) {
        fail(ErrorKind::BadModel, "the node reads its own output '{}'", scope.graph[id].name);
      }
    }
    InferContext context(scope, node);
    if (const Function* function = find_function(scope.inference, node)) {
      infer_call(scope, node, *function);
    } else if (const OpInfo* op = find_op(node.domain, node.op_type)) {
      check_input_count(node, *op);
      check_left_out(node, *op);
      check_output_count(node, *op);
      op->infer(context);
    }
  } catch (Error& error) {
    if (scope.lenient && error.kind() == ErrorKind::BadModel) return;
    throw error.in(label(scope.graph, node));
  }
}

}  // namespace

Scope::Scope(Inference& shared, Graph& of, const std::map<std::string, std::int64_t>& versions)
    : inference(shared), graph(of), opsets(versions) {
  const std::size_t count = graph.values().size();
  facts.resize(count);
  is_output.assign(count, false);
  from_file.assign(count, false);
  for (std::size_t i = 0; i < count; ++i) from_file[i] = graph.values()[i].declared;
  for (const ValueId id : graph.inputs) from_file[static_cast<std::size_t>(id)] = true;
  for (const ValueId id : graph.outputs) {
    from_file[static_cast<std::size_t>(id)] = true;
    is_output[static_cast<std::size_t>(id)] = true;
  }
}

Scope::Scope(const Scope& around, Graph& of, const std::map<std::string, std::int64_t>& versions,
             Scope* visible)
    : Scope(around.inference, of, versions) {
  outer = visible;
  depth = around.depth + 1;
  lenient = around.lenient;
}

void refine(Scope& scope, ValueId id, const ValueType& found) {
  Value& value = scope.graph[id];
  using Kind = ValueType::Kind;
  if (found.kind == Kind::Unknown) return;
  if (value.type.kind == Kind::Unknown) {
    value.type = found;
    return;
  }
  // Sequences and their like are not described well enough to be compared.
  if (found.kind == Kind::Other || value.type.kind == Kind::Other) return;
  bool from_file = scope.from_file[static_cast<std::size_t>(id)];
  if (from_file && !same_dtype(value.type, found)) {
    fail(ErrorKind::BadModel, "{}", contradiction(value, found));
  }
  if (from_file && !same_shape(value.type, found)) {
    if (scope.fact(id).constant != nullptr) {
      fail(ErrorKind::BadModel, "{}", contradiction(value, found));
    }
    // Exporters get shapes wrong, of outputs above all; what nodes make of their inputs is certain.
    std::vector<std::string>& notes = scope.inference.notes;
    std::string note = contradiction(value, found);
    // A function's body is walked once for each call.
    const bool known = std::ranges::find(notes, note) != notes.end();
    if (!scope.lenient && !known) notes.push_back(std::move(note));
    value.type.shape.reset();
    scope.from_file[static_cast<std::size_t>(id)] = from_file = false;
  }
  // Inferred symbols tell which dimensions are equal, so they win, except in what the user sees.
  if (from_file && scope.is_output[static_cast<std::size_t>(id)]) {
    complete(value.type, found);
    return;
  }
  ValueType merged = found;
  // What was inferred before a pass changed the graph may be stale: it only fills gaps.
  complete(merged, value.type, from_file ? Trust::Full : Trust::FillOnly);
  value.type = std::move(merged);
}

void infer_scope(Scope& scope) {
  if (scope.outer != nullptr) capture(scope);
  note_constants(scope);
  for (Node& node : scope.graph.nodes) {
    if (scope.depth > 0 && --scope.inference.body_budget < 0) return;
    infer_node(scope, node);
  }
}

}  // namespace ops

std::vector<std::string> infer_types(Model& model) {
  ops::Inference inference;
  for (const Function& function : model.functions) {
    inference.functions[function.name].push_back(&function);
  }
  ops::Scope scope(inference, model.graph, model.opsets);
  ops::infer_scope(scope);
  return std::move(inference.notes);
}

}  // namespace quench
