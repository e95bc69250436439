// SPDX-License-Identifier: Apache-2.0
// From the plan to the model in the file.
#include "quench/lower.h"

#include <algorithm>

#include "base/format.h"
#include "job/job.h"
#include "job/stored_weights.h"
#include "options/settings.h"

namespace quench::job {
namespace {

/// What is kept of a float model that nothing is compared with would only take memory.
bool needs_float_model(const Job& job) {
  return job.samples.any() || !job.options.debug_info_save_path.empty() ||
         !job.options.report_save_path.empty();
}

/// Takes the Q and DQ nodes off the ends, and says which of them stay float.
void open_edges(Job& job) {
  job.edges = retargeting::find_edges(job.written.graph);
  std::string left;
  const auto note = [&](ValueId id) {
    const std::string& name = job.written.graph[id].name;
    if (job.written.graph[id].constant || job.written.graph[id].type.dtype != DType::Float32 ||
        std::ranges::find(job.edges, name, &retargeting::IntegerEdge::name) != job.edges.end()) {
      return;
    }
    left += format("{}'{}'", left.empty() ? "" : ", ", name);
  };
  for (const ValueId id : job.written.graph.inputs) note(id);
  for (const ValueId id : job.written.graph.outputs) note(id);
  if (!left.empty()) {
    job.report.warnings.push_back(format(
        "these inputs and outputs stay float, because no integers stand next to them: {}", left));
  }
  retargeting::restore_edges(job.written, job.edges);
}

}  // namespace

Model as_written(const Model& quantized, const QuantizeOptions& options, PaddedChannels& padded) {
  Model written = quantized;
  if (options.pad_channels) {
    padded = pad_channels(written, find_target(options.config.target).depthwise_channels);
  }
  return options.qoperator ? to_qoperator(written) : written;
}

void lower(Job& job) {
  Model model;
  if (job.is_full()) {
    model = insert_qdq(job.to_quantize(), job.plan, job.solution);
  } else if (needs_float_model(job)) {
    model = job.to_quantize();
  } else {
    model = std::move(job.model);
  }
  note_origin(model, job.options, job.origin);  // replaces every note: others come after it
  lower_stored_weights(job, model);
  if (job.is_full()) {
    PaddedChannels padded;
    job.written = as_written(model, job.options, padded);
    job.report.padded_layers = padded.layers;
    job.report.padded_bytes = padded.bytes;
    job.channels.padded = std::move(padded.values);
    note_decisions(job.model, job.plan, job.written, job.report);
    if (job.options.integer_io) open_edges(job);
    if (job.options.store_settings) {
      note_channels(job.written, job.channels, job.original.graph);
    }
  } else {
    job.written = model;
  }
  job.quantized = std::move(model);
}

}  // namespace quench::job
