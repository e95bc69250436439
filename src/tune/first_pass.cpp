// SPDX-License-Identifier: Apache-2.0
// One pass that leaves statistics and means behind.
#include "tune/first_pass.h"

#include "calibrate/collect.h"

namespace quench::tune {

FirstPass pass_first(const Model& model, const QuantPlan& plan, std::vector<std::string> values,
                     const FirstSamples& samples, const Context& context) {
  MeanRecorder recorder(model, plan);
  calibrate::CollectOptions collect{.batch = samples.batch, .count = samples.count};
  collect.on_outputs = [&](const TensorMap& outputs, std::int64_t count) {
    recorder.add(outputs, count);
  };
  StatisticMap statistics =
      calibrate::collect(recorder.model(), values, samples.source, collect, context);
  return {.values = std::move(values),
          .samples = samples.count,
          .statistics = std::move(statistics),
          .means = recorder.means()};
}

}  // namespace quench::tune
