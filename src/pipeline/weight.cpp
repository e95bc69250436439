// SPDX-License-Identifier: Apache-2.0
// The kinds of quantisation that leave activations in float until the model runs.
#include "pipeline/weight.h"

#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "pipeline/disk_bytes.h"
#include "pipeline/fingerprint.h"
#include "pipeline/memory.h"
#include "pipeline/settings.h"
#include "pipeline/weight_items.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// How near the outputs are to those of the float model; the engine is not loaded without data.
void judge(const std::string& model_path, const std::string& out_path,
           const QuantizeOptions& options, const Context& context, QuantizeReport& report) {
  if (options.data.path.empty()) return;
  EvaluateOptions how;
  how.data = options.data;
  how.metrics = {"cosine", "sqnr", "agreement"};
  how.batch = options.batch;
  const CompareResult result = compare(out_path, model_path, how, context);
  report.outputs = result.outputs;
  report.judged_samples = result.samples;
}

/// Stores every item's weight as integers, one after the other.
void write_items(Model& model, const std::vector<WeightItem>& items, const Context& context,
                 QuantizeReport& report) {
  lower::WeightWriter writer(model);
  for (std::size_t i = 0; i < items.size(); ++i) {
    context.check_cancelled();
    const quant::QuantWeight weight = quantize_item(model.graph, items[i], context.num_threads());
    report.weights.push_back(describe(model.graph, items[i], weight));
    writer.replace(items[i].sites, weight);
    context.report("quantising", static_cast<std::int64_t>(i + 1),
                   static_cast<std::int64_t>(items.size()));
  }
  writer.finish();
  note_choices(model, report.weights);
}

}  // namespace

QuantizeReport quantize_weights(const std::string& model_path, const std::string& out_path,
                                const QuantizeOptions& options, const Context& context) {
  const auto began = Clock::now();
  const PeakMemory memory;
  QuantizeReport report;
  report.warnings = options.notes;
  Model model = load(model_path);
  report.bytes_before = bytes_on_disk(model_path, model);
  set_input_shapes(model, options.input_shapes);
  model = prepare_weights(std::move(model));
  const std::vector<WeightItem> items = find_weight_items(model, options, report);
  { const AtomicFile probe(out_path); }  // a path that cannot be written: say so before the work
  const std::string origin = fingerprint(model);
  write_items(model, items, context, report);
  note_origin(model, options, origin);
  save(model, out_path);
  judge(model_path, out_path, options, context, report);
  report.bytes_after = bytes_on_disk(out_path, model);
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  report.peak_memory_mb = memory.peak_mb();
  return report;
}

QuantizeReport quantize_dynamic(const std::string& model_path, const std::string& /*out_path*/,
                                const QuantizeOptions& /*options*/, const Context& /*context*/) {
  fail(ErrorKind::Unsupported, "'{}': DYNAMIC_QUANT is not supported yet; FULL_QUANT is",
       model_path);
}

}  // namespace quench
