// SPDX-License-Identifier: Apache-2.0
// Top-5 accuracy.
#include "metrics/metric.h"

namespace quench::metrics {

MetricEntry top5() {
  return {{"top5", "percent of samples whose label is one of the five largest outputs", true, true,
           Gather::Share},
          []() -> std::unique_ptr<Metric> { return std::make_unique<TopK>(5); }};
}

}  // namespace quench::metrics
