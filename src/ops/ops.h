// SPDX-License-Identifier: Apache-2.0
// The operator table: what is known of each operator apart from how to run it.
#pragma once

#include <span>
#include <string_view>

#include "ops/context.h"
#include "ops/facts.h"

namespace quench::ops {

/// One row of the table.
struct OpInfo {
  std::string_view domain;  ///< "" is ONNX's own
  std::string_view name;
  int since;       ///< the first version of its domain that has it
  int min_inputs;  ///< over all versions
  int max_inputs;  ///< over all versions; -1: any number
  InferRule infer;
  OpFacts facts;
};

/// Every operator, in the order of ops.inc.
std::span<const OpInfo> all_ops() noexcept;
/// Its most outputs over all versions; -1: any number.
int max_outputs(const OpInfo& op);
/// The row of an operator, or null for one we have no facts of.
const OpInfo* find_op(std::string_view domain, std::string_view name);

/// One row more, as long as this lives: how a test shows what a row alone brings about.
class ExtraOp {
 public:
  explicit ExtraOp(OpInfo row);
  ~ExtraOp();
  ExtraOp(const ExtraOp&) = delete;
  ExtraOp& operator=(const ExtraOp&) = delete;

 private:
  OpInfo row_;
  const OpInfo* before_;
};

}  // namespace quench::ops
