// SPDX-License-Identifier: Apache-2.0
// What the files of targets/ give: one function a target, and rows for their tables.
#pragma once

#include "quench/quant_config.h"

namespace quench::plan {

#define QUENCH_TARGET(name) TargetInfo name();
#include "plan/targets.inc"
#undef QUENCH_TARGET

/// Rows of a target's table.
constexpr TargetOp integer(std::string_view op_type) {
  return {.kind = NodePlan::Kind::Integer, .op_type = op_type};
}
/// Its result may stay float.
constexpr TargetOp integer_to_float(std::string_view op_type) {
  return {.kind = NodePlan::Kind::Integer, .op_type = op_type, .float_output = true};
}
constexpr TargetOp moves(std::string_view op_type) {
  return {.kind = NodePlan::Kind::PassThrough, .op_type = op_type};
}
constexpr TargetOp in_float(std::string_view op_type, std::string_view reason) {
  return {.op_type = op_type, .reason = reason};
}

/// The row of an operator, or null.
const TargetOp* find_op(const TargetInfo& target, std::string_view op_type);

}  // namespace quench::plan
