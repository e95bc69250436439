// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's parameters, turned into ours.
#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "compat/paddleslim/names.h"
#include "formats/disk_bytes.h"
#include "job/job.h"
#include "job/job_files.h"
#include "plan/target.h"
#include "quench/formats.h"
#include "quench/paddleslim.h"
#include "report/advice.h"

namespace quench {
namespace {

using Names = std::vector<std::string>;

void expect_one_of(std::string_view parameter, const std::string& value, const Names& names) {
  if (std::ranges::find(names, value) != names.end()) return;
  fail(ErrorKind::Usage, "{} is '{}'{}; expected one of {}", parameter, value,
       did_you_mean(value, names), fmt::join(names, ", "));
}

void check(const PtqConfig& options, bool paddle) {
  Names algorithms;
  for (const ObserverInfo& observer : all_observers()) algorithms.emplace_back(observer.name);
  expect_one_of("algo", options.algo, algorithms);
  expect_one_of("weight_quantize_type", options.weight_quantize_type,
                {"channel_wise_abs_max", "abs_max"});
  expect_one_of("activation_quantize_type", options.activation_quantize_type,
                {"range_abs_max", "moving_average_abs_max", "abs_max"});
  expect_one_of("round_type", options.round_type, {"round", "adaround"});
  if (!options.onnx_format && !paddle) {
    fail(ErrorKind::Unsupported,
         "onnx_format is false: only Paddle programs have the old form, and the result is ONNX");
  }
  if (options.batch_size < 1 || options.batch_nums < 0) {
    fail(ErrorKind::Usage, "batch_size is {} and batch_nums {}; expected at least 1 and at least 0",
         options.batch_size, options.batch_nums);
  }
}

void check_files(const QuantPostStaticOptions& options) {
  if (options.quantize_model_path.empty()) {
    fail(ErrorKind::Usage, "quantize_model_path is empty: say where the result goes");
  }
  const int given = (options.data_loader.path.empty() ? 0 : 1) + (options.batch_generator ? 1 : 0) +
                    (options.sample_generator ? 1 : 0);
  const bool adaround = options.round_type == "adaround";
  if (given == 1 && (options.bias_correction || adaround) && options.data_loader.path.empty()) {
    fail(ErrorKind::Usage,
         "{} reads samples twice, and a generator gives them once; give them by data_loader",
         adaround ? "round_type 'adaround'" : "bias_correction");
  }
  if (given == 1) return;
  fail(ErrorKind::Usage,
       "quant_post_static needs samples to calibrate with: give one of data_loader, "
       "batch_generator and sample_generator; {} are given",
       given);
}

/// A file where the path ends as one of a known format does, else a file in that folder.
std::string out_of(const QuantPostStaticOptions& options, bool paddle) {
  const std::string& path = options.quantize_model_path;
  const auto formats = model_formats();
  const bool file = std::ranges::any_of(
      formats, [&](const FormatName& format) { return path.ends_with(format.extension); });
  return file ? path
              : compat::save_path(path, {options.save_model_filename, options.save_params_filename},
                                  paddle);
}

std::string target_of(const std::string& backend, bool paddle) {
  if (backend.empty() || backend == "mkldnn") return paddle ? "paddle" : "onnxruntime";
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

}  // namespace

namespace compat {

std::int64_t sample_limit(const PtqConfig& config, std::int64_t limit) {
  if (config.batch_nums == 0) return limit;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / config.batch_size;
  const std::int64_t wanted = std::min(config.batch_nums, most) * config.batch_size;
  return limit > 0 ? std::min(limit, wanted) : wanted;
}

QuantizeOptions job_of(const PtqConfig& options, bool paddle) {
  check(options, paddle);
  QuantizeOptions job;
  QuantConfig& config = job.config;
  config.target = target_of(options.deploy_backend, paddle);
  config.global.activation_observer = options.algo;
  config.global.weight_observer = options.weight_quantize_type;
  config.global.activation_bits = options.activation_bits;
  config.global.weight_bits = options.weight_bits;
  config.hist_percent = options.hist_percent;
  config.skip_tensor_list = options.skip_tensor_list;
  if (!options.is_full_quantize) {
    // PaddleSlim rounds what the listed types read, and takes note of the scales of the rest.
    config.round_for_layers_only = paddle;
    config.quantizable_op_type =
        onnx_types(options.quantizable_op_type, find_target(config.target));
  }
  job.batch = options.batch_size;
  job.held_out = 0;
  job.bias_correction = options.bias_correction;
  job.training.adaround = options.round_type == "adaround";
  return job;
}

}  // namespace compat

namespace {

/// What a generator gave, as a batch.
TensorMap batch_of(TensorMap given, const std::vector<Value>& inputs, bool one_sample) {
  if (!one_sample) return given;
  for (const Value& input : inputs) {
    const auto found = given.find(input.name);
    const bool rank = found != given.end() && input.type.shape;
    if (!rank || found->second.rank() + 1 != static_cast<std::int64_t>(input.type.shape->size())) {
      continue;  // the run says what is wrong with it
    }
    Shape shape = found->second.shape();
    shape.insert(shape.begin(), 1);
    found->second = found->second.reshaped(std::move(shape));
  }
  return given;
}

/// Streams what a generator gives: nothing is kept of it but statistics.
Model from_generator(const Model& model, const QuantConfig& config,
                     const QuantPostStaticOptions& options, const Context& context,
                     QuantizeReport& report) {
  const bool samples = static_cast<bool>(options.sample_generator);
  const Generator& generator = samples ? options.sample_generator : options.batch_generator;
  const std::int64_t most = samples ? compat::sample_limit(options, 0) : options.batch_nums;
  const PTQ ptq(config, context);
  ObservedModel observed = ptq.quantize(model);
  std::int64_t calls = 0;
  while (most == 0 || calls < most) {
    context.check_cancelled();
    auto given = generator();
    if (!given) break;
    observed.run(batch_of(std::move(*given), observed.inputs(), samples));
    context.report("calibrating", ++calls, most);
  }
  if (calls == 0) fail(ErrorKind::BadData, "the generator gave nothing to calibrate with");
  const StatisticMap statistics = observed.statistics();
  warn_of_values(statistics, report);
  for (const auto& [name, statistic] : statistics) {
    report.calibration_samples = std::max(report.calibration_samples, statistic.samples);
  }
  Model written = ptq.convert(observed);
  job::note_decisions(observed.model(), observed.plan(), written, report);
  return written;
}

/// What `quantize` does not: samples from a generator, and Paddle's old form.
QuantizeReport quantize_here(const std::string& in, const std::string& out,
                             const QuantizeOptions& how, const QuantPostStaticOptions& options,
                             const Context& context, Outputs& outputs) {
  reads_job(outputs, in, how);
  writes_model(outputs, out, "the quantised model");
  const auto began = std::chrono::steady_clock::now();
  job::Job job(in, how, context);
  job.out_path = out;
  if (how.data.path.empty()) {
    const Model model = load(in);
    job.report.bytes_before = bytes_on_disk(in, model);
    job.written = from_generator(model, how.config, options, context, job.report);
  } else {
    job::run(job);
  }
  const SaveOptions saving{.fake_quantize = !options.onnx_format};
  job.report.bytes_after = static_cast<std::int64_t>(save(job.written, out, saving, outputs));
  job.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return std::move(job.report);
}

}  // namespace

QuantizeReport quant_post_static(const QuantPostStaticOptions& options, const Context& context) {
  check_files(options);
  const std::string in =
      model_path(options.model_dir, options.model_filename, options.params_filename);
  const std::string out = out_of(options, compat::is_paddle(in));
  QuantizeOptions job = compat::job_of(options, compat::becomes_paddle(out));
  job.data = options.data_loader;
  job.data.limit = compat::sample_limit(options, job.data.limit);
  if (!job.data.path.empty() && options.onnx_format) return quantize(in, out, job, context);
  return with_outputs(
      [&](Outputs& outputs) { return quantize_here(in, out, job, options, context, outputs); });
}

}  // namespace quench
