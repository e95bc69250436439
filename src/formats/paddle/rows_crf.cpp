// SPDX-License-Identifier: Apache-2.0
// The best path through a conditional random field, by Viterbi's algorithm.
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

/// The body of a Scan: a graph with nodes of its own.
class Body {
 public:
  Body(Op& op, std::string name) : translator_(op.translator()) {
    graph_.name = std::move(name);
    scope_.graph = &graph_;
  }

  /// What is made inside `fill` belongs to this graph.
  template <typename Fill>
  GraphBox made(const Fill& fill) {
    {
      const Entered entered(translator_, scope_);
      fill(*this);
    }
    return GraphBox(std::move(graph_));
  }
  ValueId input(const char* stem, DType dtype, std::vector<Dim> shape) {
    graph_.inputs.push_back(translator_.add(stem, ValueType::tensor(dtype, std::move(shape))));
    return graph_.inputs.back();
  }
  void output(ValueId value) { graph_.outputs.push_back(value); }
  ValueId constant(const char* stem, Tensor tensor) {
    return translator_.add_constant(stem, std::move(tensor));
  }
  ValueId node(const char* op_type, std::vector<ValueId> inputs,
               const Attributes& attributes = {}) {
    Node node;
    node.op_type = op_type;
    node.inputs = std::move(inputs);
    node.outputs = {translator_.add(op_type)};
    for (const auto& [name, data] : attributes) node.set(name, data);
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs.front();
  }
  ValueId ints(std::initializer_list<std::int64_t> values) {
    return translator_.add_constant("axes", Tensor::of<std::int64_t>({std::ssize(values)}, values));
  }

 private:
  Translator& translator_;
  Graph graph_;
  Scope scope_{};
};

/// From the best scores that end in each tag to those of the next word, and where each came from.
GraphBox step_body(Op& op, const Tensor& transitions, std::int64_t tags) {
  const Dim dim{.value = tags, .symbol = {}};
  return Body(op, "viterbi_step").made([&](Body& body) {
    const ValueId scores = body.input("scores", DType::Float32, {dim});
    const ValueId emission = body.input("emission", DType::Float32, {dim});
    const ValueId column = body.node("Unsqueeze", {scores, body.ints({1})});
    const ValueId all = body.node("Add", {column, body.constant("transitions", transitions)});
    const Attributes axis{{"axis", std::int64_t{0}}};
    const ValueId from = body.node("ArgMax", {all}, axis);
    const ValueId best = body.node("GatherElements", {all, from}, axis);
    const ValueId next = body.node("Squeeze", {best, body.ints({0})});
    body.output(body.node("Add", {next, emission}));
    body.output(body.node("Squeeze", {from, body.ints({0})}));
  });
}

/// From a word's tag to the one of the word before.
GraphBox back_body(Op& op, std::int64_t tags) {
  const Dim dim{.value = tags, .symbol = {}};
  return Body(op, "viterbi_back").made([&](Body& body) {
    const ValueId tag = body.input("tag", DType::Int64, {});
    const ValueId from = body.input("from", DType::Int64, {dim});
    const ValueId before = body.node("Gather", {from, tag}, {{"axis", std::int64_t{0}}});
    body.output(before);
    body.output(body.node("Identity", {before}));
  });
}

/// Rows of a matrix.
Tensor rows_of(const Tensor& matrix, std::int64_t first, std::int64_t count) {
  const std::int64_t width = matrix.shape()[1];
  const std::vector<float> values = to_float(matrix);
  const auto part = std::span(values).subspan(static_cast<std::size_t>(first * width),
                                              static_cast<std::size_t>(count * width));
  return Tensor::of<float>({count, width}, part);
}

/// Of one sequence: emissions [T, tags]. The parameter holds what a path gets for the tag it starts
/// with, for the one it ends with, and for each step.
void read_crf_decoding(Op& op) {
  const Tensor* weight = op.constant_of(op.in("Transition"));
  if (weight == nullptr || weight->rank() != 2 || weight->shape()[1] < 1 ||
      weight->shape()[0] != weight->shape()[1] + 2) {
    fail(ErrorKind::Unsupported, "its transitions are no parameter of two rows more than columns");
  }
  if (op.has("Length")) fail(ErrorKind::Unsupported, "its sequences are padded (Length)");
  const std::int64_t tags = weight->shape()[1];
  const ValueId start = op.constant(rows_of(*weight, 0, 1).reshaped({tags}));
  const ValueId stop = op.constant(rows_of(*weight, 1, 1).reshaped({tags}));
  const Tensor steps = rows_of(*weight, 2, tags);
  const ValueId emission = op.in("Emission");
  const ValueId first = op.squeeze(op.slice(emission, 0, 0, 1), {0});
  const auto forward =
      op.nodes("Scan", {op.node("Add", {first, start}), op.slice(emission, 0, 1, kEnd)}, 2,
               {{"body", step_body(op, steps, tags)}, {"num_scan_inputs", std::int64_t{1}}});
  const ValueId last = op.node("ArgMax", {op.node("Add", {forward[0], stop})},
                               {{"axis", std::int64_t{0}}, {"keepdims", std::int64_t{0}}});
  const std::vector<std::int64_t> backward{1};
  const auto back = op.nodes("Scan", {last, forward[1]}, 2,
                             {{"body", back_body(op, tags)},
                              {"num_scan_inputs", std::int64_t{1}},
                              {"scan_input_directions", backward},
                              {"scan_output_directions", backward}});
  const ValueId path = op.reshape(
      op.node("Concat", {back[1], op.reshape(last, {1})}, {{"axis", std::int64_t{0}}}), {-1, 1});
  if (!op.has("Label")) {
    op.set("ViterbiPath", path);
    return;
  }
  // With labels it says which words have the right tag.
  const ValueId label = op.reshape(op.cast(op.in("Label"), DType::Int64), {-1, 1});
  op.set("ViterbiPath", op.cast(op.node("Equal", {path, label}), DType::Int64));
}

/// The first constant of floats among the inputs of a node.
const Tensor* float_input(const Graph& graph, const Node& node) {
  for (const ValueId input : node.inputs) {
    const Tensor* tensor = graph.constant(input);
    if (tensor != nullptr && tensor->dtype() == DType::Float32) return tensor;
  }
  return nullptr;
}

void restore_crf_decoding(Restored& op) {
  std::vector<const Tensor*> vectors;
  const Tensor* steps = nullptr;
  for (const Node* node : op.nodes) {
    const auto* body = node->get<GraphBox>("body");
    if (body == nullptr) {
      const Tensor* found = float_input(op.graph, *node);
      if (found != nullptr) vectors.push_back(found);
      continue;
    }
    for (const Node& inner : (*body)->nodes) {
      if (steps == nullptr) steps = float_input(**body, inner);
    }
  }
  if (vectors.size() != 2 || steps == nullptr) return;
  std::vector<float> values;
  for (const Tensor* part : {vectors[0], vectors[1], steps}) {
    const std::vector<float> rows = to_float(*part);
    values.insert(values.end(), rows.begin(), rows.end());
  }
  const std::int64_t tags = steps->shape()[0];
  for (const std::string& name : op.inputs["Transition"]) {
    op.parameters.emplace(name,
                          Tensor::of<float>({tags + 2, tags}, std::span<const float>(values)));
  }
}

constexpr auto kRows = std::to_array<OpRow>({
    {"crf_decoding", "", "Emission Transition Label Length", "ViterbiPath", "", read_crf_decoding,
     13, restore_crf_decoding},
});

}  // namespace

std::span<const OpRow> crf_rows() { return kRows; }

}  // namespace quench::paddle
