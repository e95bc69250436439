// SPDX-License-Identifier: Apache-2.0
// From a program and its parameters to a graph in ONNX's vocabulary.
#include "formats/paddle/translate.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "formats/foreign.h"
#include "formats/paddle/op.h"
#include "formats/paddle/rows.h"
#include "formats/tidy.h"

namespace quench::paddle {
namespace {

bool is_port(const OpItem& op) { return op.type == "feed" || op.type == "fetch"; }

/// Every operator has a row, or none is read: the user sees all that is missing at once.
void expect_known(const Program& program) {
  std::map<std::string, int> missing;
  for (const Block& block : program.blocks) {
    for (const OpItem& op : block.ops) {
      if (!is_port(op) && find_row(op.type) == nullptr) ++missing[op.type];
    }
  }
  if (missing.empty()) return;
  const std::vector<std::string> names = formats::counted(missing);
  fail(ErrorKind::Unsupported,
       "the program uses operators of Paddle that are not known: {}; cut the model before them, or "
       "export it without them",
       fmt::join(names, ", "));
}

void note(const std::vector<Argument>& arguments, std::set<std::string_view>& names) {
  for (const Argument& each : arguments) names.insert(each.variables.begin(), each.variables.end());
}

void expect_own_names(const Program& program) {
  for (const Block& block : program.blocks) {
    std::set<std::string_view> names;
    for (const VarItem& var : block.vars) {
      if (names.insert(var.name).second) continue;
      fail(ErrorKind::BadModel, "two variables of block {} are called '{}'; the program is damaged",
           block.index, var.name);
    }
  }
}

int opset_for(const Program& program) {
  int opset = 13;
  for (const Block& block : program.blocks) {
    for (const OpItem& op : block.ops) {
      if (!is_port(op)) opset = std::max(opset, find_row(op.type)->opset);
    }
  }
  return opset;
}

/// What a feed or fetch operator names, in the order of `col`.
std::vector<std::string> ports(const Block& block, std::string_view type) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const OpItem& op : block.ops) {
    if (op.type != type) continue;
    const Attr* col = op.find("col");
    const auto* number = col == nullptr ? nullptr : std::get_if<std::int64_t>(&col->data);
    const auto& arguments = type == "feed" ? op.outputs : op.inputs;
    if (arguments.size() != 1 || arguments[0].variables.size() != 1) {
      fail(ErrorKind::BadModel, "a {} operator does not name one variable", type);
    }
    found.emplace_back(number == nullptr ? 0 : *number, arguments[0].variables[0]);
  }
  std::ranges::stable_sort(found, {}, &std::pair<std::int64_t, std::string>::first);
  std::vector<std::string> names;
  for (auto& [col, name] : found) names.push_back(std::move(name));
  return names;
}

/// An open first dimension is the batch; any other has the input's name.
ValueType input_type(const VarItem* var, const std::string& name) {
  if (var == nullptr || !var->shape) return ValueType::tensor(DType::Float32);
  std::vector<Dim> dims;
  for (const std::int64_t size : *var->shape) {
    Dim dim;
    if (size >= 0) {
      dim.value = size;
    } else {
      dim.symbol = dims.empty() ? "batch" : format("{}_{}", name, dims.size());
    }
    dims.push_back(std::move(dim));
  }
  return ValueType::tensor(var->dtype, std::move(dims));
}

void add_inputs(Translator& translator, const Block& block) {
  Graph& graph = translator.graph();
  for (const std::string& name : ports(block, "feed")) {
    if (graph.find(name) != kNoValue) {
      fail(ErrorKind::BadModel, "two feed operators give '{}'", name);
    }
    const ValueId id = translator.add(name, input_type(translator.variable(block, name), name));
    graph.inputs.push_back(id);
    translator.define(name, id);
  }
}

void add_outputs(Translator& translator, const Block& block) {
  Graph& graph = translator.graph();
  for (const std::string& name : ports(block, "fetch")) {
    ValueId id = translator.lookup(name);
    const bool taken = std::ranges::find(graph.outputs, id) != graph.outputs.end();
    const bool other_name = graph[id].name != name && graph.find(name) == kNoValue;
    if (taken || other_name || graph[id].constant) {
      const ValueId copy = translator.add(name);
      graph.nodes.push_back({.name = format("fetch/{}", graph[copy].name),
                             .op_type = "Identity",
                             .domain = "",
                             .inputs = {id},
                             .outputs = {copy},
                             .attributes = {},
                             .foreign = ""});
      id = copy;
    }
    graph.outputs.push_back(id);
  }
  if (graph.outputs.empty()) {
    fail(ErrorKind::BadModel,
         "the program has no fetch operator, so it has no outputs; export it for inference");
  }
}

/// Paddle does not hold inputs to the sizes that a program declares; some are left over from
/// training and do not even fit. Then sizes are open, all but those of channels.
void open_sizes(Graph& graph) {
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    Value& value = graph[static_cast<ValueId>(i)];
    if (!value.constant) value.type.shape.reset();
  }
}

void infer(Model& model) {
  Graph& graph = model.graph;
  std::vector<ValueType> declared;
  for (const ValueId id : graph.inputs) declared.push_back(graph[id].type);
  try {
    (void)infer_types(model);
    return;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::BadModel) throw;
  }
  open_sizes(graph);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    auto& shape = declared[i].shape;
    for (std::size_t k = 0; shape && k < shape->size(); ++k) {
      constexpr std::size_t kChannels = 1;
      Dim& dim = (*shape)[k];
      if (k != kChannels && dim.known()) {
        dim = {.value = -1, .symbol = format("{}_{}", graph[graph.inputs[i]].name, k)};
      }
    }
    graph[graph.inputs[i]].type = declared[i];
  }
  (void)infer_types(model);
}

/// What the shape rules cannot tell of an output, its program may.
void declare_outputs(Translator& translator, const Block& block) {
  Graph& graph = translator.graph();
  for (const ValueId id : graph.outputs) {
    if (graph[id].type.kind != ValueType::Kind::Unknown) continue;
    const VarItem* var = translator.variable(block, graph[id].name);
    graph[id].type = ValueType::tensor(var == nullptr ? DType::Float32 : var->dtype);
  }
}

}  // namespace

void drop_unread(Program& program) {
  std::set<std::string_view> read;
  for (const Block& block : program.blocks) {
    read.insert(block.results.begin(), block.results.end());
    if (&block == &program.blocks.front()) continue;
    for (const OpItem& op : block.ops) note(op.inputs, read);
  }
  std::vector<OpItem>& ops = program.blocks.front().ops;
  std::vector<bool> wanted(ops.size(), false);
  for (std::size_t i = ops.size(); i-- > 0;) {
    const auto leads_on = [&](const Argument& made) {
      return std::ranges::any_of(made.variables,
                                 [&](const std::string& name) { return read.contains(name); });
    };
    // One without outputs works in place.
    wanted[i] =
        is_port(ops[i]) || ops[i].outputs.empty() || std::ranges::any_of(ops[i].outputs, leads_on);
    if (wanted[i]) note(ops[i].inputs, read);
  }
  std::vector<OpItem> kept;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (wanted[i]) kept.push_back(std::move(ops[i]));
  }
  ops = std::move(kept);
}

void expect_readable(const Program& program) {
  expect_known(program);
  expect_own_names(program);
}

std::vector<const VarItem*> parameters_of(const Program& program) {
  std::vector<const VarItem*> result;
  for (const VarItem& var : program.blocks.front().vars) {
    if (var.parameter) result.push_back(&var);
  }
  return result;
}

Model translate(const Program& program, const std::map<std::string, Tensor>& parameters) {
  Model model;
  const int opset = opset_for(program);
  model.opsets[""] = opset;
  model.producer_name = "PaddlePaddle";
  model.producer_version = program.version;
  model.graph.name = "main";
  Translator translator(program, opset);
  Scope scope{.graph = &model.graph, .values = {}, .outer = nullptr};
  const Block& block = program.blocks.front();
  const Entered entered(translator, scope);
  add_inputs(translator, block);
  for (const VarItem* var : parameters_of(program)) {
    translator.define(var->name, translator.add_constant(var->name, parameters.at(var->name)));
  }
  translator.run_block(block);
  add_outputs(translator, block);
  compact(model.graph, std::vector<bool>(model.graph.nodes.size(), false));
  infer(model);
  declare_outputs(translator, block);
  verify(model);
  return model;
}

}  // namespace quench::paddle
