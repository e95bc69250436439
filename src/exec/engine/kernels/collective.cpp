// SPDX-License-Identifier: Apache-2.0
// Operators between the processes that run a model together.
#include "exec/engine/kernels/collective.h"

#include "exec/engine/kernels/common.h"
#include "exec/engine/ranks.h"

namespace quench::exec {
namespace {

/// What is made without the other processes.
Kernel refuse_alone(const OpContext& /*context*/) {
  return refuse(
      "it joins what the processes of a split model have: run all parts together, as in quench "
      "launch -n 2 COMMAND part{{rank}}.onnx --tensor-parallel");
}

Kernel make_all_gather(const OpContext& context, const std::shared_ptr<Ranks>& ranks) {
  // ONNX Runtime's schema and its kernel have different defaults.
  if (context.node.find("axis") == nullptr) return refuse("it has no attribute axis");
  const std::int64_t size = context.node.get_int("group_size", 1);
  if (size != ranks->size()) {
    return refuse("it joins {} parts, but {} processes run the model", size, ranks->size());
  }
  return [ranks, axis = context.node.get_int("axis", 0)](Call& call) {
    call.set(0, gather_over(*ranks, call.in(0), wrap_axis(axis, call.in(0).dim())));
  };
}

}  // namespace

Kernel make_collective(const OpContext& context, const std::shared_ptr<Ranks>& ranks) {
  if (context.node.op_type == "AllGather") return make_all_gather(context, ranks);
  return [ranks](Call& call) {
    std::vector<at::Tensor> sum = {call.in(0).clone(at::MemoryFormat::Contiguous)};
    sum_over(*ranks, sum);
    call.set(0, std::move(sum[0]));
  };
}

KernelInfo kernel_AllReduce() { return {.make = refuse_alone}; }
KernelInfo kernel_AllGather() { return {.make = refuse_alone, .any_float = true}; }

}  // namespace quench::exec
