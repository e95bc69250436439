// SPDX-License-Identifier: Apache-2.0
// quench analyze statistics: every weight and activation before and after quantisation.
#include <chrono>
#include <filesystem>

#include "analyze/tensor_rows.h"
#include "base/format.h"
#include "base/made_folder.h"
#include "job/analysis.h"
#include "job/job_files.h"
#include "report/job_page.h"
#include "report/statistics_plots.h"
#include "report/statistics_table.h"

namespace quench {

StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return analyze_statistics(model_path, options, context, outputs); });
}

StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context, Outputs& outputs) {
  if (options.quantize.data.path.empty()) {
    fail(ErrorKind::Usage, "statistics are of samples: give --data PATH");
  }
  if (options.quantize.type == QuantType::Dynamic) {
    fail(ErrorKind::Usage,
         "analyze statistics is for --type full and --type weight: --type dynamic finds scales "
         "while "
         "the model runs; analyze sensitivity ranks its layers");
  }
  if (context.ranks) {
    fail(ErrorKind::Usage,
         "analyze statistics draws what one process saw; leave out --distributed");
  }
  const auto began = std::chrono::steady_clock::now();
  AnalyzeOptions own = options;
  own.quantize.statistics.clear();
  own.quantize.held_out = 0;  // every sample is drawn: there is no validation set
  const std::filesystem::path folder(options.save_dir);
  const MadeFolder made(options.save_dir);
  reads_analysis(outputs, model_path, own);
  outputs.writes((folder / "statistic.csv").string(), "the table");
  const std::string& page = options.quantize.report_save_path;
  if (!page.empty()) writes_report(outputs, page);
  const auto started =
      job::start_analysis(model_path, own, job::AnalysisNeeds::Statistics, context);
  job::Analysis& analysis = *started;
  const std::vector<analyze::TensorRow> rows =
      analyze::tensor_rows(analysis.job, *analysis.simulator);
  write_text((folder / "statistic.csv").string(), report::statistics_table(rows), outputs);
  report::write_statistics_plots(rows, options.save_dir, context, outputs);
  if (!page.empty()) {
    job::lower(analysis.job);
    report::write_page(report::page_of(analysis.job, analysis.job.quantized, model_path), page,
                       outputs);
  }
  StatisticsResult result;
  result.layers = analysis.simulator->layers().size();
  result.samples = analyze::num_row_samples(analysis.job);
  result.calibration_seconds = analysis.calibration_seconds;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
