// SPDX-License-Identifier: Apache-2.0
// The names of quanters, known without libtorch.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quench::qat {

enum class QuanterUse { kBoth, kWeights, kActivations };

struct QuanterRow {
  std::string_view name;
  QuanterUse use = QuanterUse::kBoth;
  std::string_view summary;
};

std::span<const QuanterRow> quanter_rows();
/// The row's name for what a user wrote: our own names, or PaddleSlim's (lsq_weight, lsq_act,
/// channel_wise_lsq_weight, PACT, FakeQuanterWithAbsMaxObserver, WeightLSQplusQuanter...). Throws
/// Error(BadConfig) that suggests the nearest, or says that it is for weights or activations only.
std::string quanter_called(const std::string& name, bool is_weight);

}  // namespace quench::qat
