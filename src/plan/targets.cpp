// SPDX-License-Identifier: Apache-2.0
// The list of targets.
#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "ops/ops.h"
#include "plan/target.h"

namespace quench {

const std::vector<TargetInfo>& all_targets() {
  static const std::vector<TargetInfo> list = {
#define QUENCH_TARGET(name) plan::name(),
#include "plan/targets.inc"
#undef QUENCH_TARGET
  };
  return list;
}

namespace {

/// What people call some of them for short.
struct TargetAlias {
  std::string_view alias;
  std::string_view name;
};
constexpr TargetAlias kAliases[] = {
#define QUENCH_TARGET(name)
#define QUENCH_TARGET_ALIAS(alias, name) {#alias, #name},
#include "plan/targets.inc"
#undef QUENCH_TARGET_ALIAS
#undef QUENCH_TARGET
};

}  // namespace

const TargetInfo& find_target(std::string_view name) {
  for (const auto& [alias, meant] : kAliases) {
    if (alias == name) name = meant;
  }
  std::vector<std::string> names;
  for (const TargetInfo& target : all_targets()) {
    if (target.name == name) return target;
    names.emplace_back(target.name);
  }
  fail(ErrorKind::Usage, "there is no target '{}'{}; there are {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

const TargetOp* plan::find_op(const TargetInfo& target, std::string_view op_type) {
  auto found = std::ranges::find(target.ops, op_type, &TargetOp::op_type);
  if (found != target.ops.end()) return &*found;
  const ops::OpInfo* op = ops::find_op("", op_type);
  if (op == nullptr || op->facts.integer == Form::None) return nullptr;
  found = std::ranges::find_if(target.ops, [&](const TargetOp& row) {
    return row.op_type.empty() && row.form == op->facts.integer;
  });
  return found == target.ops.end() ? nullptr : &*found;
}

}  // namespace quench
