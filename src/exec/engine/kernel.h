// SPDX-License-Identifier: Apache-2.0
// What a kernel is: made once from a node, then called with tensors. Every "no" is given when it
// is made, with its reason.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "exec/engine/torch.h"
#include "exec/fused.h"
#include "quench/graph.h"

namespace quench::exec {

class Program;

/// The tensors of one call. An input that is left out is an undefined tensor.
class Call {
 public:
  Call(std::vector<at::Tensor>& slots, std::span<const int> in, std::span<const int> out,
       std::span<const int> dying = {})
      : slots_(slots), in_(in), out_(out), dying_(dying) {}

  std::size_t num_in() const noexcept { return in_.size(); }
  std::size_t num_out() const noexcept { return out_.size(); }
  const at::Tensor& in(std::size_t i) const {
    static const at::Tensor kNone;
    return i < in_.size() && in_[i] >= 0 ? slots_[static_cast<std::size_t>(in_[i])] : kNone;
  }
  bool has(std::size_t i) const { return in(i).defined(); }
  /// Whether this call is the last reader of input `i`, so that its memory may be written.
  bool dies(std::size_t i) const;
  /// Whether anybody reads output `i`.
  bool wants(std::size_t i) const noexcept { return i < out_.size() && out_[i] >= 0; }
  void set(std::size_t i, at::Tensor value) {
    if (wants(i)) slots_[static_cast<std::size_t>(out_[i])] = std::move(value);
  }
  /// What `set` has put there.
  const at::Tensor& out(std::size_t i) const { return slots_[static_cast<std::size_t>(out_[i])]; }

 private:
  std::vector<at::Tensor>& slots_;
  std::span<const int> in_;
  std::span<const int> out_;
  std::span<const int> dying_;
};

using KernelFunction = std::function<void(Call&)>;

/// A kernel ready to be called, or the reason why there is none.
struct Kernel {
  KernelFunction run;
  std::string refusal;
  bool shares = false;  ///< its work is shared by `share`, if at all, and never by OpenMP alone

  Kernel(KernelFunction function) : run(std::move(function)) {}  // NOLINT: lambdas convert
  template <typename F>
  requires std::is_invocable_v<F, Call&> Kernel(F function)
      : run(std::move(function)) {}  // NOLINT: lambdas convert
  struct Refusal {
    std::string reason;
  };
  Kernel(Refusal no) : refusal(std::move(no.reason)) {}  // NOLINT: refusals convert
};

inline Kernel sharing(Kernel kernel) {
  kernel.shares = true;
  return kernel;
}

template <typename... Args>
Kernel::Refusal refuse(fmt::format_string<Args...> text, Args&&... args) {
  return {fmt::format(text, std::forward<Args>(args)...)};
}

/// What a kernel may know of its node when it is made.
struct OpContext {
  const Graph& graph;
  const Node& node;
  std::int64_t opset = 0;
  /// Whether the fast kernels may be used (not in reference sessions).
  bool fast = true;
  /// Whether this machine multiplies bytes exactly.
  bool byte_products = true;
  /// Whether other layers of the model run on bytes.
  bool among_bytes = false;
  /// Compiles a graph inside the node. Its program takes the graph's inputs, then its captures.
  std::function<std::shared_ptr<Program>(const Graph&)> compile;
  /// Values of outer graphs that the graphs inside read. They follow the node's own inputs in
  /// every call, in this order.
  std::vector<std::string> captured;
  /// Inputs that `take_constant` has handed over.
  mutable std::vector<std::size_t> taken;

  DType input_dtype(std::size_t i) const;
  /// Rank of an input, or -1 when it is not known before running.
  int input_rank(std::size_t i) const;
  /// The constant fed into input `i`, or an undefined tensor. Integers of few bits become bytes.
  at::Tensor constant(std::size_t i) const;
  /// Likewise, and the kernel keeps it: calls no longer carry it, and it is freed with the kernel.
  at::Tensor take_constant(std::size_t i) const;
  bool has_input(std::size_t i) const { return node.input(i) != kNoValue; }
};

/// One kernel of the list.
struct KernelInfo {
  /// The first opset whose meaning of the operator the kernel implements.
  std::int64_t since = 1;
  Kernel (*make)(const OpContext&) = nullptr;
  /// The kernel moves elements without computing on them, so 16-bit floats need no detour.
  bool any_float = false;
};

/// The kernel for an operator, or nothing.
std::optional<KernelInfo> find_kernel(std::string_view domain, std::string_view op);

}  // namespace quench::exec
