// SPDX-License-Identifier: Apache-2.0
// Weight-only quantisation, step by step.
#include "pipeline/weight.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "options/settings.h"
#include "pipeline/disk_bytes.h"
#include "pipeline/fingerprint.h"
#include "pipeline/memory.h"
#include "pipeline/mixed_bits.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/weight_bodies.h"
#include "pipeline/weight_samples.h"
#include "quench/formats.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// GPTQ decides at so many bits and fewer; above, rounding to the nearest is as good.
constexpr int kGptqBits = 4;

using Moments = std::vector<std::optional<tune::InputMoments>>;

/// Which weights GPTQ is to round: all when it is asked for, else those of few bits, given data.
Moments look_at_inputs(WeightSamples& samples, const std::vector<WeightItem>& items,
                       const QuantizeOptions& options) {
  if (!samples.any()) {
    if (options.weight.gptq) {
      fail(ErrorKind::Usage, "GPTQ needs samples to see what the layers' inputs look like: --data");
    }
    return Moments(items.size());
  }
  std::vector<bool> wanted;
  for (const WeightItem& item : items) {
    wanted.push_back(options.weight.gptq || item.spec.bits <= kGptqBits);
  }
  if (std::ranges::find(wanted, true) == wanted.end()) return Moments(items.size());
  return samples.moments(items, wanted);
}

/// Stores every item's weight as integers, one after the other.
void write_items(Model& model, const std::vector<WeightItem>& items, Moments& moments,
                 const Context& context, QuantizeReport& report) {
  lower::WeightWriter writer(model);
  for (std::size_t i = 0; i < items.size(); ++i) {
    context.check_cancelled();
    quant::QuantWeight weight = quantize_item(model.graph, items[i], context.num_threads());
    std::string method;
    if (moments[i]) {
      const Tensor& real = *model.graph.constant(items[i].sites.front().value);
      auto better = tune::gptq(real, weight, *moments[i], context.num_threads());
      if (better) {
        weight = std::move(*better);
        method = "gptq";
      }
      moments[i].reset();
    }
    report.weights.push_back(describe(model.graph, items[i], weight));
    if (!method.empty()) report.weights.back().method = method;
    writer.replace(items[i].sites, weight);
    context.report("quantising", static_cast<std::int64_t>(i + 1),
                   static_cast<std::int64_t>(items.size()));
  }
  writer.finish();
}

}  // namespace

QuantizeReport quantize_weights(const std::string& model_path, const std::string& out_path,
                                const QuantizeOptions& options, const Context& context,
                                Outputs& outputs, Model& written) {
  const auto began = Clock::now();
  const PeakMemory memory;
  QuantizeReport report;
  report.warnings = options.notes;
  Model model = load(model_path);
  report.bytes_before = bytes_on_disk(model_path, model);
  set_input_shapes(model, options.input_shapes);
  infer_and_warn(model, context);
  model = prepare_weights(std::move(model), QuantType::Weight);
  std::vector<WeightItem> items = find_weight_items(model.graph, options, report);
  if (items.empty() && count_body_weights(model, options) == 0) fail_without_weights();
  const std::string origin = fingerprint(model);
  if (options.weight.bits == 0 && !items.empty()) {
    choose_mixed_bits(model, options, context, items, report);
  }
  WeightSamples samples(model, options, context);
  Moments moments = look_at_inputs(samples, items, options);
  note_origin(model, options, origin);  // replaces every note: those of the items come after
  write_items(model, items, moments, context, report);
  quantize_bodies(model, options, context, report);
  note_choices(model, report.weights);
  const SaveOptions saving{.encode = options.weight.enable_encode};
  report.bytes_after = static_cast<std::int64_t>(save(model, out_path, saving, outputs));
  samples.judge(model, report);
  written = std::move(model);
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  report.peak_memory_mb = memory.peak_mb();
  return report;
}

}  // namespace quench
