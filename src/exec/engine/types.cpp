// SPDX-License-Identifier: Apache-2.0
// Which values the engine can hold.
#include "exec/engine/types.h"

#include "base/format.h"
#include "exec/engine/bridge.h"
#include "exec/fused.h"

namespace quench::exec {

namespace {

/// uint16 stands between QuantizeLinear and DequantizeLinear, and nowhere else.
bool holds(const Node& node, DType dtype) {
  const bool quantises = node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
  return scalar_type(dtype) && (dtype != DType::UInt16 || quantises);
}

}  // namespace

std::string type_refusal(const Graph& graph, const Node& node) {
  for (const auto* ids : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *ids) {
      if (id == kNoValue) continue;
      const Value& value = graph[id];
      if (value.type.kind == ValueType::Kind::Other) {
        return format("'{}' is not a tensor", value.name);
      }
      // The engine's own nodes read constants as they are.
      if (value.constant && node.domain == kEngineDomain) continue;
      if (value.type.dtype != DType::Undefined && !holds(node, value.type.dtype)) {
        return format("'{}' is a {} tensor, which the engine cannot compute with", value.name,
                      name_of(value.type.dtype));
      }
    }
  }
  return {};
}

}  // namespace quench::exec
