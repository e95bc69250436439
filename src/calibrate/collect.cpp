// SPDX-License-Identifier: Apache-2.0
// Streams a model's activations into statistics.
#include "calibrate/collect.h"

#include <algorithm>

#include "base/format.h"
#include "calibrate/tally.h"

namespace quench::calibrate {
namespace {

/// Part of another source.
class Slice final : public SampleSource {
 public:
  Slice(SampleSource& whole, std::int64_t first, std::int64_t count)
      : whole_(whole), first_(first), count_(count) {}
  std::int64_t size() const override { return count_; }
  bool has_labels() const override { return whole_.has_labels(); }
  Sample read(std::int64_t index) override { return whole_.read(first_ + index); }
  bool concurrent() const override { return whole_.concurrent(); }
  bool batchable() const override { return whole_.batchable(); }

 private:
  SampleSource& whole_;
  std::int64_t first_;
  std::int64_t count_;
};

/// The batch that the model fixes, or 0.
std::int64_t fixed_batch(const Model& model) {
  for (const ValueId id : model.graph.inputs) {
    const Value& value = model.graph[id];
    if (value.constant || !value.type.shape || value.type.shape->empty()) continue;
    const Dim& batch = value.type.shape->front();
    if (batch.known()) return std::max<std::int64_t>(1, batch.value);
  }
  return 0;
}

}  // namespace

StatisticMap collect(const Model& model, const std::vector<std::string>& values,
                     SampleSource& source, const CollectOptions& options, const Context& context) {
  const std::int64_t rest = source.size() - options.first;
  const std::int64_t count = options.count < 0 ? rest : std::min(options.count, rest);
  if (count <= 0 && options.first == 0) {
    fail(ErrorKind::BadData,
         "there are no samples to calibrate with; give --data a folder or file "
         "that holds some");
  }
  Tally tally(values, context.num_threads());
  tally.merge(options.seen);
  if (count <= 0) return tally.statistics();
  SessionOptions session_options;
  session_options.taps = values;
  session_options.taps.insert(session_options.taps.end(), options.others.begin(),
                              options.others.end());
  session_options.integer = options.integer;
  session_options.on_sample = [&](TapSample sample) {
    if (sample.tap < values.size()) return tally.add(sample);
    sample.tap -= values.size();
    options.on_other(sample);
  };
  Session session(model, session_options, context);
  Slice slice(source, options.first, count);
  const std::int64_t fixed = fixed_batch(model);
  const std::int64_t batch_size = fixed > 0 ? fixed : options.batch;
  BatchReader reader(slice, source.batchable() ? batch_size : 1, context,
                     fixed > 0 ? UnlikeSamples::Refuse : UnlikeSamples::EndBatch);
  std::int64_t done = options.first;
  while (const auto batch = reader.next()) {
    context.check_cancelled();
    const TensorMap outputs = session.run(batch->inputs);
    tally.keep();
    if (options.on_outputs) options.on_outputs(outputs, batch->size());
    done += batch->size();
    context.report("calibrating", done, options.first + count);
    if (options.after_batch) options.after_batch(done, [&] { return tally.statistics(); });
  }
  return tally.statistics();
}

}  // namespace quench::calibrate
