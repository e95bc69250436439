// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's parameters, turned into ours.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "compat/paddleslim/names.h"
#include "formats/disk_bytes.h"
#include "job/job.h"
#include "job/job_files.h"
#include "plan/target.h"
#include "quench/paddleslim.h"
#include "report/advice.h"

namespace quench {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

void expect_one_of(std::string_view parameter, const std::string& value, const Names& names) {
  if (std::ranges::find(names, value) != names.end()) return;
  fail(ErrorKind::Usage, "{} is '{}'{}; expected one of {}", parameter, value,
       did_you_mean(value, names), fmt::join(names, ", "));
}

void check(const QuantPostStaticOptions& options) {
  expect_one_of("algo", options.algo, {"KL", "hist", "mse", "avg", "emd", "abs_max", "min_max"});
  expect_one_of("weight_quantize_type", options.weight_quantize_type,
                {"channel_wise_abs_max", "abs_max"});
  expect_one_of("activation_quantize_type", options.activation_quantize_type,
                {"range_abs_max", "moving_average_abs_max", "abs_max"});
  expect_one_of("round_type", options.round_type, {"round", "adaround"});
  if (options.round_type == "adaround") {
    fail(ErrorKind::Unsupported,
         "round_type 'adaround' is not there; take 'round', with bias_correction");
  }
  if (!options.onnx_format) {
    fail(
        ErrorKind::Unsupported,
        "onnx_format is false: the old format exists only for Paddle programs, the result is ONNX");
  }
  if (!options.params_filename.empty()) {
    fail(ErrorKind::Usage,
         "params_filename is '{}': leave it empty, an ONNX file names its own external data",
         options.params_filename);
  }
  if (options.batch_size < 1 || options.batch_nums < 0) {
    fail(ErrorKind::Usage, "batch_size is {} and batch_nums {}; expected at least 1 and at least 0",
         options.batch_size, options.batch_nums);
  }
  if (options.batch_generator && !options.data_loader.path.empty()) {
    fail(ErrorKind::Usage, "both data_loader and batch_generator are given; give one");
  }
  if (options.batch_generator && options.bias_correction) {
    fail(ErrorKind::Usage,
         "bias_correction reads samples twice, and a batch_generator gives them once; give them by "
         "data_loader");
  }
}

std::string save_path(const QuantPostStaticOptions& options) {
  const fs::path path = options.save_model_path;
  if (path.empty()) fail(ErrorKind::Usage, "save_model_path is empty: say where the result goes");
  std::error_code error;
  return fs::is_directory(path, error) ? (path / options.save_model_filename).string()
                                       : path.string();
}

std::string target_of(const std::string& backend) {
  if (backend.empty() || backend == "mkldnn") return "onnxruntime";
  if (backend == "arm") return "generic";
  return std::string(find_target(backend).name);
}

Names onnx_types(const Names& wanted, const TargetInfo& target) {
  std::set<std::string> types;
  for (const std::string& name : wanted) {
    const auto paddle = compat::paddle_types().find(name);
    if (paddle == compat::paddle_types().end()) {
      types.insert(name);  // ONNX's own name, or one that the plan refuses with the nearest
      continue;
    }
    for (const std::string& type : paddle->second) {
      if (plan::find_op(target, type) != nullptr) types.insert(type);
    }
  }
  if (types.empty() && !wanted.empty()) {
    fail(ErrorKind::BadConfig, "quantizable_op_type: '{}' runs none of {} on integers", target.name,
         fmt::join(wanted, ", "));
  }
  return {types.begin(), types.end()};
}

QuantConfig config_of(const QuantPostStaticOptions& options) {
  QuantConfig config;
  config.target = target_of(options.deploy_backend);
  config.global.activation_observer = options.algo;
  config.global.weight_observer = options.weight_quantize_type;
  config.global.activation_bits = options.activation_bits;
  config.global.weight_bits = options.weight_bits;
  config.hist_percent = options.hist_percent;
  config.skip_tensor_list = options.skip_tensor_list;
  if (!options.is_full_quantize) {
    config.quantizable_op_type =
        onnx_types(options.quantizable_op_type, find_target(config.target));
  }
  return config;
}

QuantizeReport from_generator(const std::string& in, const std::string& out,
                              const QuantPostStaticOptions& options, const Context& context,
                              Outputs& outputs) {
  reads_model(outputs, in, "the model");
  writes_model(outputs, out, "the quantised model");
  const auto began = std::chrono::steady_clock::now();
  QuantizeReport report;
  const PTQ ptq(config_of(options), context);
  const Model model = load(in);
  report.bytes_before = bytes_on_disk(in, model);
  ObservedModel observed = ptq.quantize(model);
  std::int64_t batches = 0;
  while (options.batch_nums == 0 || batches < options.batch_nums) {
    context.check_cancelled();
    const auto batch = options.batch_generator();
    if (!batch) break;
    observed.run(*batch);
    context.report("calibrating", ++batches, options.batch_nums);
  }
  if (batches == 0) fail(ErrorKind::BadData, "batch_generator gave no batch to calibrate with");
  const StatisticMap statistics = observed.statistics();
  warn_of_values(statistics, report);
  for (const auto& [name, statistic] : statistics) {
    report.calibration_samples = std::max(report.calibration_samples, statistic.samples);
  }
  const Model written = ptq.convert(observed);
  job::note_decisions(observed.model(), observed.plan(), written, report);
  report.bytes_after = static_cast<std::int64_t>(save(written, out, {}, outputs));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

}  // namespace

QuantizeReport quant_post_static(const QuantPostStaticOptions& options, const Context& context) {
  check(options);
  const std::string in = compat::paddle_model_path(options.model_dir, options.model_filename);
  const std::string out = save_path(options);
  if (options.batch_generator) {
    return with_outputs(
        [&](Outputs& outputs) { return from_generator(in, out, options, context, outputs); });
  }
  if (options.data_loader.path.empty()) {
    fail(ErrorKind::Usage,
         "quant_post_static needs samples to calibrate with: set data_loader.path or "
         "batch_generator");
  }
  QuantizeOptions job;
  job.config = config_of(options);
  job.data = options.data_loader;
  if (options.batch_nums > 0) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / options.batch_size;
    const std::int64_t wanted = std::min(options.batch_nums, most) * options.batch_size;
    job.data.limit = job.data.limit > 0 ? std::min(job.data.limit, wanted) : wanted;
  }
  job.batch = options.batch_size;
  job.held_out = 0;
  job.bias_correction = options.bias_correction;
  return quantize(in, out, job, context);
}

}  // namespace quench
