// SPDX-License-Identifier: Apache-2.0
// The list of quanters.
#include "qat/quanter_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/format.h"
#include "base/nearest.h"
#include "quench/quanters.h"

namespace quench::qat {

std::span<const QuanterRow> quanter_rows() {
  using enum QuanterUse;
  static constexpr auto kRows = std::to_array<QuanterRow>({
#define QUENCH_QUANTER(name, use, summary) {#name, use, summary},
#include "qat/quanters.inc"
#undef QUENCH_QUANTER
  });
  return kRows;
}

namespace {

/// Our name for what a user wrote, which may be PaddleSlim's.
const std::string& own_name(const std::string& name) {
  static const std::map<std::string, std::string> kPaddle = {
      {"lsq_weight", "lsq_plus"},
      {"channel_wise_lsq_weight", "lsq_plus"},
      {"lsq_act", "lsq_plus"},
      {"WeightLSQplusQuanter", "lsq_plus"},
      {"ActLSQplusQuanter", "lsq_plus"},
      {"PACT", "pact"},
      {"PACTQuanter", "pact"},
      {"FakeQuanterWithAbsMaxObserver", "moving_average_abs_max"},
      {"FakeQuanterChannelWiseAbsMaxObserver", "channel_wise_abs_max"}};
  const auto translated = kPaddle.find(name);
  return translated == kPaddle.end() ? name : translated->second;
}

}  // namespace

std::string quanter_called(const std::string& name, bool is_weight) {
  const std::string& wanted = own_name(name);
  const auto rows = quanter_rows();
  const auto found = std::ranges::find(rows, wanted, &QuanterRow::name);
  if (found == rows.end()) {
    std::vector<std::string> names;
    for (const QuanterRow& row : rows) names.emplace_back(row.name);
    fail(ErrorKind::BadConfig, "no quanter is called '{}'{} (there are: {})", name,
         did_you_mean(name, names), fmt::join(names, ", "));
  }
  const auto unfit = is_weight ? QuanterUse::kActivations : QuanterUse::kWeights;
  if (found->use == unfit) {
    fail(ErrorKind::BadConfig, "the quanter '{}' is for {} only", name,
         is_weight ? "activations" : "weights");
  }
  return wanted;
}

}  // namespace quench::qat

namespace quench {

bool is_quanter(const std::string& name) {
  const auto rows = qat::quanter_rows();
  return std::ranges::find(rows, qat::own_name(name), &qat::QuanterRow::name) != rows.end();
}

std::vector<QuanterInfo> all_quanters() {
  std::vector<QuanterInfo> infos;
  for (const qat::QuanterRow& row : qat::quanter_rows()) {
    using enum qat::QuanterUse;
    const std::string_view use = row.use == kBoth      ? "weights, activations"
                                 : row.use == kWeights ? "weights"
                                                       : "activations";
    infos.push_back({.name = row.name, .use = use, .summary = row.summary});
  }
  return infos;
}

}  // namespace quench
