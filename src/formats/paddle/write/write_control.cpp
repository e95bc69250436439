// SPDX-License-Identifier: Apache-2.0
// Conditions and loops: operators with blocks inside.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/types.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

ValueType scalar(DType dtype) { return ValueType::tensor(dtype, std::vector<Dim>{}); }

void assign(Writer& writer, const std::string& from, const std::string& to) {
  writer.op("assign").in("X", from).out("Out", to);
}

void fill(Writer& writer, const std::string& to, DType dtype, float value) {
  writer.op("fill_constant")
      .out("Out", to)
      .set("shape", std::vector<std::int64_t>{})
      .set("value", value)
      .set("dtype", type_row(dtype)->number);
}

Graph inner_graph(const NodeWriter& node, const char* attribute) {
  const GraphBox* box = node.node.get<GraphBox>(attribute);
  if (box == nullptr) node.refuse(format("it has no {}", attribute));
  Graph graph = **box;
  legalize_inner(graph);
  return graph;
}

/// One branch, which sets the node's outputs where `condition` holds.
void write_branch(const NodeWriter& node, const char* attribute, const std::string& condition) {
  const Graph graph = inner_graph(node, attribute);
  Writer inner(graph, node.writer);
  write_nodes(inner, node.opset);
  Names made;
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i] == kNoValue) continue;
    made.push_back(node.out(i));
    assign(inner, inner.variable(graph.outputs.at(i)), made.back());
  }
  Names read = inner.close();
  std::erase_if(read, [&](const std::string& name) { return std::ranges::count(made, name) > 0; });
  node.op("conditional_block")
      .in("Cond", condition)
      .in("Input", read)
      .out("Out", made)
      .out("Scope", node.writer.scopes(condition + ".scopes"))
      .set("is_scalar_condition", true)
      .set_block("sub_block", inner.block());
}

void write_if(const NodeWriter& node) {
  const std::string otherwise =
      node.writer.temporary(node.out() + ".otherwise", scalar(DType::Bool));
  write_branch(node, "then_branch", node.in());
  node.op("logical_not").in("X", node.in()).out("Out", otherwise);
  write_branch(node, "else_branch", otherwise);
}

/// A loop while it is written: its variables live in the block around it.
class Loop {
 public:
  explicit Loop(const NodeWriter& node)
      : node_(node),
        body_(inner_graph(node, "body")),
        carried_(node.node.inputs.size() < 2 ? 0 : node.node.inputs.size() - 2) {
    if (node.node.outputs.size() > carried_ || body_.outputs.size() > carried_ + 1) {
      node.refuse("it stacks what its turns make");
    }
    const std::string stem = graph()[node.node.outputs.at(0)].name;
    goes_on_ = node.writer.temporary(stem + ".goes_on", scalar(DType::Bool));
    turn_ = node.writer.temporary(stem + ".turn", scalar(DType::Int64));
  }

  void write() {
    begin();
    Writer inner(body_, node_.writer);
    inner.alias(body_.inputs.at(0), turn_);
    inner.alias(body_.inputs.at(1), goes_on_);
    for (std::size_t i = 0; i < carried_; ++i) inner.alias(body_.inputs.at(i + 2), state_[i]);
    write_nodes(inner, node_.opset);
    next(inner);
    Names changed = state_;
    changed.insert(changed.end(), {goes_on_, turn_});
    Names read = inner.close();
    std::erase(read, goes_on_);
    node_.op("while")
        .in("Condition", goes_on_)
        .in("X", read)
        .out("Out", changed)
        .out("StepScopes", node_.writer.scopes(goes_on_ + ".scopes"))
        .set("is_test", true)
        .set_block("sub_block", inner.block());
  }

 private:
  const Graph& graph() const { return node_.graph(); }

  /// What goes round starts as the node's inputs.
  void begin() {
    for (std::size_t i = 0; i < carried_; ++i) {
      const ValueId output = i < node_.node.outputs.size() ? node_.node.outputs[i] : kNoValue;
      const ValueType& type = graph()[node_.node.inputs[i + 2]].type;
      state_.push_back(output == kNoValue ? node_.writer.temporary(turn_ + ".state", type)
                                          : node_.out(i));
      assign(node_.writer, node_.in(i + 2), state_.back());
    }
    fill(node_.writer, turn_, DType::Int64, 0);
    if (node_.has(1)) {
      assign(node_.writer, node_.in(1), goes_on_);
    } else {
      fill(node_.writer, goes_on_, DType::Bool, 1);
    }
    limit(node_.writer);
  }

  /// There are at most as many turns as the node's first input says.
  void limit(Writer& writer) {
    if (!node_.has(0)) return;
    const std::string left = writer.temporary(goes_on_ + ".left", scalar(DType::Bool));
    const std::string both = writer.temporary(goes_on_ + ".both", scalar(DType::Bool));
    writer.op("less_than").in("X", turn_).in("Y", node_.in(0)).out("Out", left).set("axis", -1);
    writer.op("logical_and").in("X", left).in("Y", goes_on_).out("Out", both);
    assign(writer, both, goes_on_);
  }

  /// At the end of a turn. What one variable becomes may be what another was: all are taken before
  /// one changes.
  void next(Writer& inner) {
    Names made;
    for (std::size_t i = 0; i <= carried_; ++i) {
      const ValueId output = body_.outputs.at(i);
      const ValueType& type = body_[output].type;
      made.push_back(inner.temporary(turn_ + ".next", type));
      assign(inner, inner.variable(output), made.back());
    }
    assign(inner, made[0], goes_on_);
    for (std::size_t i = 0; i < carried_; ++i) assign(inner, made[i + 1], state_[i]);
    inner.op("increment").in("X", turn_).out("Out", turn_).set("step", 1.0F);
    limit(inner);
  }

  const NodeWriter& node_;
  Graph body_;
  std::size_t carried_;
  std::string goes_on_;
  std::string turn_;
  Names state_;
};

void write_loop(const NodeWriter& node) { Loop(node).write(); }

}  // namespace

void write_nodes(Writer& writer, std::int64_t opset) {
  for (const Node& node : writer.graph().nodes) {
    write_row(node.op_type)->write({writer, node, opset});
  }
}

std::vector<WriteRow> control_rows() {
  return {
      {"If", write_if},
      {"Loop", write_loop},
  };
}

}  // namespace quench::paddle::write
