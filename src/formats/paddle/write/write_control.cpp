// SPDX-License-Identifier: Apache-2.0
// Conditions and loops: operators with blocks inside.
#include <algorithm>
#include <utility>

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

/// One branch, which is taken where `condition` holds; what it makes of the node's outputs.
Names write_branch(const NodeWriter& node, const char* attribute, const std::string& condition) {
  const Graph graph = inner_graph(node, attribute);
  Writer inner(graph, node.writer);
  write_nodes(inner, node.opset);
  Names made;
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i] == kNoValue) continue;
    const Value& output = node.graph()[node.node.outputs[i]];
    made.push_back(node.writer.temporary(format("{}.{}", output.name, attribute), output.type));
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
  return made;
}

/// As Paddle's own programs have it: a block for each branch, then a choice.
void write_if_blocks(const NodeWriter& node, const Names& made) {
  const std::string otherwise =
      node.writer.temporary(made.at(0) + ".otherwise", scalar(DType::Bool));
  const std::string mask = node.writer.temporary(made.at(0) + ".mask", scalar(DType::Int32));
  const Names taken = write_branch(node, "then_branch", node.in());
  node.op("logical_not").in("X", node.in()).out("Out", otherwise);
  const Names other = write_branch(node, "else_branch", otherwise);
  node.op("cast")
      .in("X", node.in())
      .out("Out", mask)
      .set("in_dtype", type_row(DType::Bool)->number)
      .set("out_dtype", type_row(DType::Int32)->number);
  for (std::size_t i = 0; i < made.size(); ++i) {
    node.op("select_input").in("X", Names{other[i], taken[i]}).in("Mask", mask).out("Out", made[i]);
  }
}

/// One branch, which gives the node's outputs; the number of its block.
std::int32_t write_region(const NodeWriter& node, const char* attribute) {
  const Graph graph = inner_graph(node, attribute);
  Writer inner(graph, node.writer);
  write_nodes(inner, node.opset);
  Names given;
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i] != kNoValue) given.push_back(inner.variable(graph.outputs.at(i)));
  }
  inner.op(kYield).in("X", given);
  (void)inner.close();
  return inner.block();
}

void write_if(const NodeWriter& node) {
  Names made;
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i] != kNoValue) made.push_back(node.out(i));
  }
  if (made.empty()) return;
  if (node.writer.inner() == Inner::Blocks) return write_if_blocks(node, made);
  const std::int32_t taken = write_region(node, "then_branch");
  const std::int32_t other = write_region(node, "else_branch");
  node.op("if")
      .in("Cond", node.in())
      .out("Out", made)
      .set_block("block_0", taken)
      .set_block("block_1", other);
}

/// A loop while it is written. What goes round: the number of the turn, then what the node carries.
class Loop {
 public:
  explicit Loop(const NodeWriter& node)
      : node_(node),
        body_(inner_graph(node, "body")),
        carried_(node.node.inputs.size() < 2 ? 0 : node.node.inputs.size() - 2) {
    if (node.node.outputs.empty() || node.node.outputs[0] == kNoValue) {
      node.refuse("nobody reads its first value");
    }
    if (node.node.outputs.size() > carried_ || body_.outputs.size() != carried_ + 1 ||
        body_.inputs.size() != carried_ + 2) {
      node.refuse("it stacks what its turns make");
    }
    stem_ = graph()[node.node.outputs[0]].name;
  }

  /// What goes round lives in the block around it.
  void write_block() {
    const std::string condition = named(node_.writer, "goes_on", scalar(DType::Bool));
    Names state{named(node_.writer, "turn", scalar(DType::Int64))};
    for (std::size_t i = 0; i < carried_; ++i) {
      state.push_back(named(node_.writer, "state", type_in(i)));
    }
    const Names start = begin();
    assign(node_.writer, first_condition(start[0]), condition);
    for (std::size_t i = 0; i < state.size(); ++i) assign(node_.writer, start[i], state[i]);
    Writer inner(body_, node_.writer);
    Names next = turn(inner, state, condition);
    // What one variable becomes may be what another was: all are taken before one changes.
    for (std::size_t i = 2; i < next.size(); ++i) {
      const std::string copy = named(inner, "next", body_[body_.outputs[i - 1]].type);
      assign(inner, std::exchange(next[i], copy), copy);
    }
    assign(inner, next[0], condition);
    for (std::size_t i = 0; i < state.size(); ++i) assign(inner, next[i + 1], state[i]);
    Names read = inner.close();
    std::erase(read, condition);
    Names changed = state;
    changed.push_back(condition);
    node_.op("while")
        .in("Condition", condition)
        .in("X", read)
        .out("Out", changed)
        .out("StepScopes", node_.writer.scopes(condition + ".scopes"))
        .set("is_test", true)
        .set_block("sub_block", inner.block());
    for (std::size_t i = 0; i < carried_; ++i) {
      if (wanted(i)) assign(node_.writer, state[i + 1], node_.out(i));
    }
  }

  void write_region() {
    Names start = begin();
    for (std::size_t i = 0; i < carried_; ++i) {
      // Paddle's loop lets go of what it reads, and a parameter is wanted in the next run.
      if (node_.constant(i + 2) == nullptr) continue;
      const std::string copy = named(node_.writer, "start", type_in(i));
      assign(node_.writer, std::exchange(start[i + 1], copy), copy);
    }
    const std::string condition = first_condition(start[0]);
    Writer inner(body_, node_.writer);
    Names state{named(inner, "turn", scalar(DType::Int64))};
    Names made{named(node_.writer, "turns", scalar(DType::Int64))};
    for (std::size_t i = 0; i < carried_; ++i) {
      state.push_back(named(inner, "state", type_in(i)));
      made.push_back(wanted(i) ? node_.out(i) : named(node_.writer, "unread", type_in(i)));
    }
    inner.op(kArguments).out("Out", state);
    const std::string holds = named(inner, "holds", scalar(DType::Bool));
    fill(inner, holds, DType::Bool, 1);
    const Names next = turn(inner, state, holds);
    inner.op(kYield).in("X", next);
    (void)inner.close();
    node_.op("while")
        .in("Condition", condition)
        .in("X", start)
        .out("Out", made)
        .set_block("block_0", inner.block());
  }

 private:
  const Graph& graph() const { return node_.graph(); }

  std::string named(Writer& writer, const char* what, const ValueType& type) const {
    return writer.temporary(format("{}.{}", stem_, what), type);
  }

  bool wanted(std::size_t i) const {
    return i < node_.node.outputs.size() && node_.node.outputs[i] != kNoValue;
  }

  const ValueType& type_in(std::size_t i) const { return node_.type(i + 2); }

  /// What the first turn reads.
  Names begin() {
    Names start{named(node_.writer, "first", scalar(DType::Int64))};
    fill(node_.writer, start[0], DType::Int64, 0);
    for (std::size_t i = 0; i < carried_; ++i) start.push_back(node_.in(i + 2));
    return start;
  }

  std::string first_condition(const std::string& turn) {
    if (node_.has(1)) return limited(node_.writer, turn, node_.in(1));
    const std::string always = named(node_.writer, "always", scalar(DType::Bool));
    fill(node_.writer, always, DType::Bool, 1);
    return limited(node_.writer, turn, always);
  }

  /// A condition that also holds the loop to as many turns as the node's first input says.
  std::string limited(Writer& writer, const std::string& turn, const std::string& condition) {
    if (!node_.has(0)) return condition;
    const std::string left = named(writer, "left", scalar(DType::Bool));
    const std::string both = named(writer, "both", scalar(DType::Bool));
    writer.op("less_than").in("X", turn).in("Y", node_.in(0)).out("Out", left).set("axis", -1);
    writer.op("logical_and").in("X", left).in("Y", condition).out("Out", both);
    return both;
  }

  /// One turn; gives whether there is another, and what it reads.
  Names turn(Writer& inner, const Names& state, const std::string& condition) {
    inner.alias(body_.inputs.at(0), state[0]);
    inner.alias(body_.inputs.at(1), condition);
    for (std::size_t i = 0; i < carried_; ++i) inner.alias(body_.inputs.at(i + 2), state[i + 1]);
    write_nodes(inner, node_.opset);
    const std::string one = named(inner, "one", scalar(DType::Int64));
    const std::string count = named(inner, "count", scalar(DType::Int64));
    fill(inner, one, DType::Int64, 1);
    inner.op("elementwise_add").in("X", state[0]).in("Y", one).out("Out", count).set("axis", -1);
    Names next{limited(inner, count, inner.variable(body_.outputs[0])), count};
    for (std::size_t i = 0; i < carried_; ++i) next.push_back(inner.variable(body_.outputs[i + 1]));
    return next;
  }

  const NodeWriter& node_;
  Graph body_;
  std::size_t carried_;
  std::string stem_;
};

void write_loop(const NodeWriter& node) {
  Loop loop(node);
  if (node.writer.inner() == Inner::Blocks) {
    loop.write_block();
  } else {
    loop.write_region();
  }
}

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
