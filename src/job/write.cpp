// SPDX-License-Identifier: Apache-2.0
// The files of a job.
#include <algorithm>

#include "base/format.h"
#include "formats/registry.h"
#include "job/job.h"
#include "quench/formats.h"
#include "report/debug_info.h"
#include "report/job_page.h"

namespace quench::job {
namespace {

/// ONNX has integers of 4, 8 and 16 bits only: says so where weights need much less.
void warn_of_wasted_bits(const std::string& out_path, QuantizeReport& report) {
  constexpr double kWorthSaying = 1.05;
  double elements = 0;
  double needed = 0;
  double stored = 0;
  for (const WeightChoice& choice : report.weights) {
    elements += static_cast<double>(choice.elements);
    needed += static_cast<double>(choice.elements) * choice.bits;
    stored += 8 * static_cast<double>(choice.bytes);
  }
  if (stored <= kWorthSaying * needed || elements == 0) return;
  report.warnings.push_back(format(
      "{} takes {:.1f} bits a weight for {:.1f}, because ONNX has integers of 4, 8 and 16 bits "
      "only; a result that ends in {}, or `quench pack`, takes no more than there are",
      out_path, stored / elements, needed / elements, packed_format().extension));
}

/// The file stores integers of few bits in whole bytes.
ParamBits bits_of(const Job& job) {
  ParamBits bits;
  for (const auto& [name, params] : job.solution.values) bits[name] = params.spec.bits;
  for (const auto& [place, params] : job.solution.weights) {
    const Node& node = node_called(job.model.graph, place.first);
    bits[job.model.graph[node.inputs[place.second]].name] = params.spec.bits;
  }
  return bits;
}

/// Both models run with every value kept, and each is looked at: that costs some 25 times what the
/// calibration of a sample does. The first samples show it as well, and cost about two passes.
std::int64_t debugged_rounds(const Job& job) {
  constexpr std::int64_t kOneOf = 12;
  constexpr std::int64_t kLeast = 2;
  return std::max(kLeast, job.samples.source().size() / kOneOf);
}

}  // namespace

void write(Job& job, const std::string& out_path, Outputs& outputs) {
  const QuantizeOptions& options = job.options;
  const SaveOptions saving{.encode = options.weight.enable_encode};
  job.report.bytes_after = static_cast<std::int64_t>(save(job.written, out_path, saving, outputs));
  const std::string_view note = written_model(out_path).format.quantized_note;
  if (!note.empty()) job.report.warnings.emplace_back(note);
  const bool packed = out_path.ends_with(packed_format().extension);
  if (!job.is_full() && options.weight.bits == 0 && !packed) {
    warn_of_wasted_bits(out_path, job.report);
  }
  DebugInfoOptions debug = debug_info_of(options);
  if (debug.rounds == 0 && job.samples.any()) debug.rounds = debugged_rounds(job);
  if (!debug.folder.empty()) {
    write_debug_tables(job.model, job.quantized, debug, job.context, outputs, bits_of(job));
  }
  if (!options.report_save_path.empty()) {
    report::ReportData data = report::page_of(job, job.quantized, job.model_path);
    report::add_speed(job, job.written, data);
    data.target = job.target;
    report::write_page(data, options.report_save_path, outputs);
  }
}

}  // namespace quench::job
