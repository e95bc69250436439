// SPDX-License-Identifier: Apache-2.0
// The table of kernels, and what kernels may ask of their node.
#include "exec/engine/kernel.h"

#include <algorithm>
#include <map>

#include "exec/engine/bridge.h"
#include "exec/engine/expand_weights.h"
#include "exec/fused.h"

namespace quench::exec {

#define QUENCH_KERNEL(op) KernelInfo kernel_##op();
#define QUENCH_KERNEL_IN(domain, op, id) KernelInfo kernel_##id();
#include "exec/kernels.inc"
#undef QUENCH_KERNEL
#undef QUENCH_KERNEL_IN

std::optional<KernelInfo> find_kernel(std::string_view domain, std::string_view op) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, KernelInfo (*)()> kTable = {
#define QUENCH_KERNEL(op) {{"", #op}, &kernel_##op},
#define QUENCH_KERNEL_IN(domain, op, id) {{domain, #op}, &kernel_##id},
#include "exec/kernels.inc"
#undef QUENCH_KERNEL
#undef QUENCH_KERNEL_IN
  };
  auto found = kTable.find({domain == "ai.onnx" ? "" : domain, op});
  if (found == kTable.end() && domain == kEngineDomain) found = kTable.find({"", op});
  if (found == kTable.end()) return std::nullopt;
  return found->second();
}

bool Call::dies(std::size_t i) const {
  const at::Tensor& tensor = in(i);
  return tensor.defined() && std::ranges::find(dying_, in_[i]) != dying_.end() &&
         std::ranges::count(in_, in_[i]) == 1 && tensor.use_count() == 1 &&
         tensor.storage().use_count() == 1 && tensor.is_non_overlapping_and_dense() &&
         // A view of a feed: the memory is the caller's, which libtorch may not resize.
         tensor.storage().unsafeGetStorageImpl()->resizable();
}

DType OpContext::input_dtype(std::size_t i) const {
  const ValueId id = node.input(i);
  return id == kNoValue ? DType::Undefined : graph[id].type.dtype;
}

int OpContext::input_rank(std::size_t i) const {
  const ValueId id = node.input(i);
  if (id == kNoValue || !graph[id].type.shape) return -1;
  return static_cast<int>(graph[id].type.shape->size());
}

at::Tensor OpContext::constant(std::size_t i) const {
  const Tensor* found = graph.constant(node.input(i));
  return found == nullptr ? at::Tensor() : to_torch(in_whole_bytes(*found));
}

at::Tensor OpContext::take_constant(std::size_t i) const {
  at::Tensor result = constant(i);
  if (result.defined()) taken.push_back(i);
  return result;
}

}  // namespace quench::exec
