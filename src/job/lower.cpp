// SPDX-License-Identifier: Apache-2.0
// From the plan to the model in the file.
#include "quench/lower.h"

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
    if (job.options.store_settings) {
      note_channels(job.written, job.channels, job.original.graph);
    }
  } else {
    job.written = model;
  }
  job.quantized = std::move(model);
}

}  // namespace quench::job
