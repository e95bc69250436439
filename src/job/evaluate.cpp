// SPDX-License-Identifier: Apache-2.0
// Holds what was made against the float model.
#include "analyze/layer_scores.h"
#include "formats/registry.h"
#include "job/job.h"
#include "report/advice.h"

namespace quench::job {

void evaluate(Job& job) {
  QuantizeReport& report = job.report;
  if (job.validation.able()) {
    report.validation_samples = job.samples.validation().count;
    report.outputs = job.validation.scores(
        retargeting::with_float_edges(as_read(job.written, job.out_path), job.edges));
    if (job.is_full()) report.layers = analyze::score_layers(job, job.quantized);
  }
  warn_of_clipping(job.statistics, job.solution, report);
  warn_of_layers(report);
}

}  // namespace quench::job
