// SPDX-License-Identifier: Apache-2.0
// A whole graph as a program.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "formats/paddle/write/originals.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

void note_unknown(const Node& node, bool inside, std::set<std::string>& unknown) {
  // Constants inside become parameters.
  if (inside && node.op_type == "Constant" && node.get<Tensor>("value") != nullptr) return;
  if (!node.domain.empty()) {
    unknown.insert(node.domain + "." + node.op_type);
  } else if (write_row(node.op_type) == nullptr) {
    unknown.insert(node.op_type);
  }
  for (const Attribute& attribute : node.attributes) {
    const auto* inner = std::get_if<GraphBox>(&attribute.data);
    if (inner == nullptr) continue;
    for (const Node& each : (*inner)->nodes) note_unknown(each, true, unknown);
  }
}

void check_operators(const Graph& graph, const Originals& originals) {
  std::set<std::string> unknown;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!originals.has(static_cast<NodeId>(i))) note_unknown(graph.nodes[i], false, unknown);
  }
  if (unknown.empty()) return;
  fail(ErrorKind::Unsupported, "Paddle has no counterpart for {}; write the model as ONNX",
       fmt::join(unknown, ", "));
}

/// What Constant nodes make that are operators of the original.
std::set<std::string> whole_constants(const Model& model, const ProgramDesc& original,
                                      Inner inner) {
  std::set<std::string> names;
  const Originals originals(model, original, inner);
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const Node& node = model.graph.nodes[i];
    if (node.op_type == "Constant" && originals.has(static_cast<NodeId>(i))) {
      names.insert(model.graph[node.outputs[0]].name);
    }
  }
  return names;
}

}  // namespace

const WriteRow* write_row(std::string_view op_type) {
  static const std::vector<WriteRow> rows = [] {
    std::vector<WriteRow> all;
    for (const auto& family : {
#define QUENCH_PADDLE_ROWS(family) family##_rows(),
#include "formats/paddle/write/families.inc"
#undef QUENCH_PADDLE_ROWS
         }) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  const auto found = std::ranges::find(rows, op_type, &WriteRow::op_type);
  return found == rows.end() ? nullptr : &*found;
}

Written write_program(const Model& model, ProgramDesc original, Inner inner) {
  const Model legal = legalize(model, whole_constants(model, original, inner));
  const Originals originals(legal, std::move(original), inner);
  check_operators(legal.graph, originals);
  Writer writer(legal.graph, inner);
  name_as_paddle(writer);
  writer.feed(originals);
  originals.write_constants(writer);
  for (std::size_t i = 0; i < legal.graph.nodes.size(); ++i) {
    const Node& node = legal.graph.nodes[i];
    if (originals.write(static_cast<NodeId>(i), writer)) continue;
    write_row(node.op_type)->write({writer, node, legal.opset()});
  }
  writer.fetch(originals);
  ProgramDesc program = writer.take(originals);
  return {std::move(program), writer.parameters()};
}

}  // namespace quench::paddle::write
