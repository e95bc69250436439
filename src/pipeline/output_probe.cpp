// SPDX-License-Identifier: Apache-2.0
// Runs the model with its own weights once, and with others as often as it is asked.
#include "pipeline/output_probe.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "pipeline/feeds.h"

namespace quench {
namespace {

OutputProbe::Difference compare(const std::vector<float>& actual,
                                const std::vector<float>& expected) {
  double error = 0;
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto x = static_cast<double>(actual[i]);
    const auto y = static_cast<double>(expected[i]);
    error += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  return {.error = bb > 0 ? error / bb : 0,
          .cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb)
                    : aa == bb       ? 1.0
                                     : 0.0};
}

/// Normal numbers moved to where bytes lie.
TensorMap like_bytes(const TensorMap& feeds) {
  TensorMap result = feeds;
  for (auto& [name, tensor] : result) {
    if (tensor.dtype() != DType::Float32) continue;
    for (float& value : tensor.mutable_data<float>()) value = 128.0F + 64.0F * value;
  }
  return result;
}

}  // namespace

OutputProbe::OutputProbe(const Model& model, const QuantizeOptions& options, const Context& context)
    : context_(context) {
  EvaluateOptions how;
  how.data = options.data;
  how.batch = options.batch;
  how.random = {.samples = options.batch, .shapes = options.input_shapes};
  Session session(model, {}, context_);
  FeedReader reader(how, session.inputs(), context_);
  const auto feed = reader.next();
  if (!feed) fail(ErrorKind::BadData, "{} holds no samples", options.data.path);
  runs_.push_back({feed->inputs, session.run(feed->inputs)});
  if (!options.data.path.empty()) return;
  const TensorMap bytes = like_bytes(feed->inputs);
  runs_.push_back({bytes, session.run(bytes)});
}

OutputProbe::Difference OutputProbe::measure(const Model& changed) const {
  Session session(changed, {}, context_);
  Difference result;
  for (const Run& run : runs_) {
    const Difference part = measure(session, run);
    result.error += part.error;
    result.cosine = std::min(result.cosine, part.cosine);
  }
  return result;
}

OutputProbe::Difference OutputProbe::measure(Session& session, const Run& run) {
  const TensorMap actual = session.run(run.feeds);
  Difference result;
  for (const auto& [name, expected] : run.expected) {
    if (!info(expected.dtype()).is_float) continue;
    const Difference part = compare(to_float(actual.at(name)), to_float(expected));
    result.error += part.error;
    result.cosine = std::min(result.cosine, part.cosine);
  }
  if (!std::isfinite(result.error)) {
    fail(ErrorKind::Unsupported,
         "the model's outputs are not finite on the inputs that bits were to be chosen with; "
         "give it others with --data, or take fixed bits");
  }
  return result;
}

const Tensor& weight_of(const Model& model, const WeightItem& item) {
  return *model.graph.constant(item.sites.front().value);
}

void put_weight(Model& model, const WeightItem& item, const quant::QuantWeight& weight,
                int threads) {
  Tensor real = quant::dequantize_weight(weight, threads);
  const ValueId value = item.sites.front().value;
  const DType dtype = model.graph[value].constant->dtype();
  model.graph[value].constant = dtype == DType::Float32 ? std::move(real) : convert(real, dtype);
}

}  // namespace quench
