// SPDX-License-Identifier: Apache-2.0
// Top-1 accuracy.
#include "metrics/metric.h"

namespace quench::metrics {

MetricEntry top1() {
  return {
      {"top1", "percent of samples whose label is the largest output", true, true, Gather::Share},
      []() -> std::unique_ptr<Metric> { return std::make_unique<TopK>(1); }};
}

}  // namespace quench::metrics
