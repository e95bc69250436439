// SPDX-License-Identifier: Apache-2.0
// What the files of targets/ give: one function a target, and rows for their tables.
#pragma once

#include "ops/facts.h"
#include "quench/quant_config.h"

namespace quench::plan {

#define QUENCH_TARGET(name) TargetInfo name();
#include "plan/targets.inc"
#undef QUENCH_TARGET

using Form = ops::IntegerForm;

/// What a row of a target's table is for: one operator, or all of one integer form.
struct Which {
  constexpr Which(const char* name) : op_type(name) {}     // NOLINT: names convert
  constexpr Which(Form every) : op_type(), form(every) {}  // NOLINT: forms convert
  std::string_view op_type;
  Form form = Form::None;
};

/// Rows of a target's table.
constexpr TargetOp integer(Which which) {
  return {.kind = NodePlan::Kind::Integer, .op_type = which.op_type, .form = which.form};
}
/// Its result has one scale, whose steps divide these bounds; the upper one is a step too far.
constexpr TargetOp integer_within(Which which, Range spans) {
  TargetOp row = integer(which);
  row.spans = spans;
  return row;
}
/// Its result may stay float.
constexpr TargetOp integer_to_float(Which which) {
  return {.kind = NodePlan::Kind::Integer,
          .op_type = which.op_type,
          .form = which.form,
          .float_output = true};
}
/// Likewise; and where its result has a scale the runtime quantises it unasked, so that what it
/// reads must have one too, for this reason.
constexpr TargetOp integer_unasked(Which which, std::string_view reason) {
  TargetOp result = integer_to_float(which);
  result.reason = reason;
  return result;
}
constexpr TargetOp moves(Which which) {
  return {.kind = NodePlan::Kind::PassThrough, .op_type = which.op_type, .form = which.form};
}
constexpr TargetOp in_float(Which which, std::string_view reason) {
  return {.op_type = which.op_type, .form = which.form, .reason = reason};
}

/// The row for an operator, by its name or else by its integer form; null where there is none.
const TargetOp* find_op(const TargetInfo& target, std::string_view op_type);

}  // namespace quench::plan
