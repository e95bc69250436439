// SPDX-License-Identifier: Apache-2.0
// Paddle's operators with blocks inside: conditions and loops.
#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

using Names = std::vector<std::string>;

/// Makes a value an output of the graph that is entered: one of its own, made by a node.
void give(Translator& translator, ValueId value) {
  Graph& graph = translator.graph();
  const ValueId copy = translator.add(graph[value].name);
  Node node;
  node.op_type = "Identity";
  node.inputs = {value};
  node.outputs = {copy};
  graph.nodes.push_back(std::move(node));
  graph.outputs.push_back(copy);
}

/// A graph that gives variables after running a block, or as they are.
GraphBox branch(Translator& translator, const Block* block, const Names& results) {
  Graph graph;
  graph.name = block == nullptr ? "as_before" : format("block_{}", block->index);
  Scope scope{.graph = &graph, .values = {}, .outer = nullptr};
  const Entered entered(translator, scope);
  if (block != nullptr) translator.run_block(*block);
  for (const std::string& name : results) {
    ValueId value = translator.find(name);
    if (value == kNoValue) {
      // Nobody reads what a branch that is not taken would have made.
      const VarItem* var = translator.variable(translator.program().blocks.front(), name);
      const DType dtype =
          var == nullptr || var->dtype == DType::Undefined ? DType::Float32 : var->dtype;
      value = translator.add_constant(name, Tensor::zeros(dtype, {0}));
    }
    give(translator, value);
  }
  return GraphBox(std::move(graph));
}

void set_all(Op& op, ValueId condition, GraphBox then_graph, GraphBox else_graph) {
  const std::size_t count = op.num_outputs("Out");
  const auto made =
      op.nodes("If", {op.reshape(condition, {})}, count,
               {{"then_branch", std::move(then_graph)}, {"else_branch", std::move(else_graph)}});
  for (std::size_t i = 0; i < count; ++i) op.set("Out", made[i], i);
}

/// Variables keep what they were where the condition does not hold.
void read_conditional_block(Op& op) {
  const Names results = op.names("Out");
  const Block& block = op.inner_block("sub_block");
  if (results.empty()) return;
  GraphBox taken = branch(op.translator(), &block, results);
  set_all(op, op.in("Cond"), std::move(taken), branch(op.translator(), nullptr, results));
}

void read_select_input(Op& op) {
  const Names given = op.names("X");
  if (given.size() != 2)
    fail(ErrorKind::Unsupported, "it selects among {} variables", given.size());
  GraphBox second = branch(op.translator(), nullptr, {given[1]});
  GraphBox first = branch(op.translator(), nullptr, {given[0]});
  set_all(op, op.cast(op.in("Mask"), DType::Bool), std::move(second), std::move(first));
}

void read_if(Op& op) {
  const Block& taken = op.inner_block("block_0");
  const Block& other = op.inner_block("block_1");
  if (op.num_outputs("Out") == 0) return;
  const std::size_t count = op.num_outputs("Out");
  if (taken.results.size() != count || other.results.size() != count) {
    fail(ErrorKind::BadModel, "its branches do not give the {} values it makes", count);
  }
  GraphBox then_graph = branch(op.translator(), &taken, taken.results);
  set_all(op, op.in("Cond"), std::move(then_graph), branch(op.translator(), &other, other.results));
}

/// A loop: what goes round, and what it is called inside before and after a turn.
struct Turn {
  std::vector<ValueId> start;
  Names before;
  Names after;         ///< the condition, then as many as go round
  Names stacked = {};  ///< arrays that get one element each turn
};

/// Of an array that has been written once.
ValueId only_element(Translator& translator, const std::string& array) {
  const ValueId first = translator.add_constant(
      "first", Tensor::of<std::int64_t>({1}, std::initializer_list<std::int64_t>{0}));
  const ValueId element = translator.add(array);
  Node node;
  node.op_type = "Squeeze";
  node.inputs = {translator.lookup(array), first};
  node.outputs = {element};
  translator.graph().nodes.push_back(std::move(node));
  return element;
}

std::vector<ValueId> loop(Op& op, const Block& block, const std::string& condition,
                          const Turn& turn) {
  Translator& translator = op.translator();
  Graph body;
  body.name = format("block_{}", block.index);
  Scope scope{.graph = &body, .values = {}, .outer = nullptr};
  {
    const Entered entered(translator, scope);
    body.inputs.push_back(translator.add("iteration", ValueType::tensor(DType::Int64, {{}})));
    body.inputs.push_back(translator.add("condition", ValueType::tensor(DType::Bool, {{}})));
    if (!condition.empty()) translator.define(condition, body.inputs.back());
    for (const std::string& name : turn.before) {
      const VarItem* var = translator.variable(block, name);
      const DType dtype =
          var == nullptr || var->dtype == DType::Undefined ? DType::Float32 : var->dtype;
      body.inputs.push_back(translator.add(name, ValueType::tensor(dtype)));
      translator.define(name, body.inputs.back());
    }
    translator.run_block(block);
    for (std::size_t i = 0; i < turn.after.size(); ++i) {
      ValueId value = translator.lookup(turn.after[i]);
      if (i == 0) {
        const ValueId none = translator.add_constant(
            "scalar", Tensor::of<std::int64_t>({0}, std::initializer_list<std::int64_t>{}));
        const ValueId scalar = translator.add("next");
        Node node;
        node.op_type = "Reshape";
        node.inputs = {value, none};
        node.outputs = {scalar};
        body.nodes.push_back(std::move(node));
        value = scalar;
      }
      give(translator, value);
    }
    for (const std::string& name : turn.stacked) give(translator, only_element(translator, name));
  }
  std::vector<ValueId> inputs{kNoValue, op.reshape(op.in("Condition"), {})};
  inputs.insert(inputs.end(), turn.start.begin(), turn.start.end());
  return op.nodes("Loop", inputs, turn.start.size() + turn.stacked.size(),
                  {{"body", GraphBox(std::move(body))}});
}

void note_written(const Program& program, const Block& block, std::set<std::string>& names) {
  for (const OpItem& op : block.ops) {
    for (const Argument& output : op.outputs) {
      names.insert(output.variables.begin(), output.variables.end());
    }
  }
  for (const Block& inner : program.blocks) {
    const bool inside = inner.parent >= 0 && &inner != &block &&
                        &program.blocks[static_cast<std::size_t>(inner.parent)] == &block &&
                        inner.index > block.index;
    if (inside) note_written(program, inner, names);
  }
}

/// A variable that only the loop gives a meaning is some number before, of any element type.
ValueId as_declared(Op& op, const Block& block, const std::string& name, ValueId value) {
  const VarItem* var = op.translator().variable(block, name);
  const Tensor* before = op.constant_of(value);
  const bool other = var != nullptr && before != nullptr && var->dtype != DType::Undefined &&
                     var->dtype != before->dtype();
  return other ? op.constant(Tensor::zeros(var->dtype, before->shape())) : value;
}

bool writes(const OpItem& op, const std::string& name) {
  return std::ranges::any_of(op.outputs, [&](const Argument& output) {
    return std::ranges::find(output.variables, name) != output.variables.end();
  });
}

/// Whether an array gets its next element in each turn: it is written at one place, where the
/// turns so far are counted from 0.
bool is_stacked(Op& op, const Block& block, const std::string& name) {
  const auto writer =
      std::ranges::find_if(block.ops, [&](auto& each) { return writes(each, name); });
  if (writer == block.ops.end() || writer->type != "write_to_array") return false;
  const auto place = std::ranges::find(writer->inputs, "I", &Argument::name);
  const auto again =
      std::find_if(writer + 1, block.ops.end(), [&](auto& each) { return writes(each, name); });
  if (again == block.ops.end() && place != writer->inputs.end() && place->variables.size() == 1) {
    const std::string& counter = place->variables[0];
    const Tensor* start = op.constant_of(op.translator().find(counter));
    const auto counts = [&](const OpItem& each) { return writes(each, counter); };
    const auto step = std::find_if(writer, block.ops.end(), counts);
    const Attr* by = step == block.ops.end() ? nullptr : step->find("step");
    if (step != block.ops.end() && by == nullptr) by = step->find("value");
    const auto* one = by == nullptr ? nullptr : std::get_if<double>(&by->data);
    if (start != nullptr && start->size() == 1 && to_float(*start)[0] == 0 &&
        std::ranges::count_if(block.ops, counts) == 1 && step != block.ops.end() &&
        step->type == "increment" && one != nullptr && *one == 1) {
      return true;
    }
  }
  fail(ErrorKind::Unsupported,
       "the array '{}' is read where a loop appends to it once a turn, or where it is begun before "
       "the loop",
       name);
}

/// What the block writes of the variables around it goes round.
void read_while_block(Op& op) {
  Translator& translator = op.translator();
  const bool pir = op.item().find("sub_block") == nullptr;
  const Block& block = op.inner_block(pir ? "block_0" : "sub_block");
  (void)op.in("Condition");
  const std::string condition = op.names("Condition").front();
  std::set<std::string> written;
  note_written(translator.program(), block, written);
  written.erase(condition);
  Turn turn;
  for (const std::string& name : written) {
    const ValueId value = translator.find(name);
    if (value == kNoValue) {
      if (is_stacked(op, block, name)) turn.stacked.push_back(name);
      continue;
    }
    turn.start.push_back(as_declared(op, block, name, value));
    turn.before.push_back(name);
    op.takes(name, turn.start.back());
  }
  turn.after = turn.before;
  turn.after.insert(turn.after.begin(), condition);
  const std::vector<ValueId> after = loop(op, block, condition, turn);
  turn.before.insert(turn.before.end(), turn.stacked.begin(), turn.stacked.end());
  for (std::size_t i = 0; i < after.size(); ++i) op.become(turn.before[i], after[i]);
}

void read_while(Op& op) {
  // PIR's loops over what is written in place take and give nothing, either.
  const Attr* region = op.item().find("block_0");
  if (region == nullptr || (!op.has("X") && op.num_outputs("Out") == 0)) {
    read_while_block(op);
    return;
  }
  const Block& block = op.inner_block("block_0");
  const Turn turn{op.ins("X"), block.arguments, block.results};
  const bool fits = turn.start.size() == turn.before.size() &&
                    turn.after.size() == turn.before.size() + 1 &&
                    op.num_outputs("Out") == turn.before.size();
  if (!fits) fail(ErrorKind::BadModel, "its block does not take and give what goes round");
  const std::vector<ValueId> after = loop(op, block, "", turn);
  for (std::size_t i = 0; i < after.size(); ++i) op.set("Out", after[i], i);
}

constexpr auto kRows = std::to_array<OpRow>({
    {"conditional_block", "-", "Cond Input", "Out Scope", "", read_conditional_block},
    {"select_input", "", "X Mask", "Out", "", read_select_input},
    {"if", "", "Cond", "Out", "", read_if},
    {"while", "", "Condition X ...", "Out", "", read_while},
});

}  // namespace

std::span<const OpRow> control_rows() { return kRows; }

}  // namespace quench::paddle
