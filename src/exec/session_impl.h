// SPDX-License-Identifier: Apache-2.0
// What the engine module must provide, and its entry point.
#pragma once

#include "quench/ranks.h"
#include "quench/session.h"

namespace quench {

/// A prepared model inside the engine.
class Session::Impl {
 public:
  virtual ~Impl() = default;
  virtual EngineValues enter(const TensorMap& feeds) const = 0;
  virtual EngineValues compute(const EngineValues& feeds, std::span<const std::string> wanted) = 0;
  virtual std::vector<EngineValues> compute_all(std::span<const RunRequest> runs) = 0;
  virtual std::size_t runs_together() const noexcept = 0;
  virtual TensorMap leave(const EngineValues& values) const = 0;

  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

namespace exec {

/// The symbol `quench_engine_open` of the engine module.
using OpenFunction = Session::Impl* (*)(Model&&, const SessionOptions&, const Context&);
/// The symbol `quench_engine_join`.
using JoinFunction = Ranks* (*)(const RankOptions&, const Context&);

/// One line of kernels.inc: an operator and the range of opsets whose meaning the kernel knows.
struct KernelRow {
  std::string_view domain;
  std::string_view op;
};
std::span<const KernelRow> kernel_rows() noexcept;

}  // namespace exec
}  // namespace quench
