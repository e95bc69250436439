// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's parameters for weight-only quantisation, turned into ours.
#include <filesystem>
#include <set>

#include "base/format.h"
#include "compat/paddleslim/names.h"
#include "job/job.h"
#include "job/job_files.h"
#include "quench/formats.h"
#include "tune/weight_items.h"

namespace quench {
namespace {

void check(const QuantPostDynamicOptions& options) {
  if (options.save_model_dir.empty()) {
    fail(ErrorKind::Usage, "save_model_dir is empty: say where the result goes");
  }
  if (options.weight_bits < 1 || options.weight_bits > 16) {
    fail(ErrorKind::Usage, "weight_bits is {}; expected 1 to 16", options.weight_bits);
  }
  if (options.weight_quantize_type != "channel_wise_abs_max" &&
      options.weight_quantize_type != "abs_max") {
    fail(ErrorKind::Usage, "weight_quantize_type is '{}'; expected channel_wise_abs_max or abs_max",
         options.weight_quantize_type);
  }
  if (options.threshold_rate != 0) {
    fail(ErrorKind::Unsupported,
         "threshold_rate is {}: ranges are not clipped by a share; leave it 0",
         options.threshold_rate);
  }
}

/// Paddle's names as ONNX's. A network without convolutions has nothing to say against "conv2d".
std::vector<std::string> types_in(const Graph& graph, const std::vector<std::string>& wanted) {
  std::set<std::string> present;
  for (const Node& node : graph.nodes) present.insert(node.op_type);
  std::set<std::string> types;
  for (const std::string& name : wanted) {
    const auto paddle = compat::paddle_types().find(name);
    if (paddle == compat::paddle_types().end()) {
      types.insert(name);
      continue;
    }
    for (const std::string& type : paddle->second) {
      if (present.contains(type)) types.insert(type);
    }
  }
  if (types.empty() && !wanted.empty()) {
    fail(ErrorKind::BadConfig, "quantizable_op_type: the model has none of {}",
         fmt::join(wanted, ", "));
  }
  return {types.begin(), types.end()};
}

/// The float model with the weights that the quantised one computes with.
void write_test_model(Model model, const QuantizeOptions& job, const std::string& path,
                      const Context& context, Outputs& outputs) {
  model = job::prepare_for(std::move(model), QuantType::Weight);
  QuantizeReport unused;
  for (const WeightItem& item : find_weight_items(model.graph, job, unused)) {
    const int threads = context.num_threads();
    put_weight(model, item, quantize_item(model.graph, item, threads), threads);
  }
  save(model, path, {}, outputs);
}

}  // namespace

QuantizeReport quant_post_dynamic(const QuantPostDynamicOptions& options, const Context& context) {
  check(options);
  const std::string in =
      model_path(options.model_dir, options.model_filename, options.params_filename);
  const auto file_in = [&](const char* folder) {
    return compat::save_path((std::filesystem::path(options.save_model_dir) / folder).string(),
                             {options.save_model_filename, options.save_params_filename},
                             compat::is_paddle(in));
  };
  const Model model = load(in);
  QuantizeOptions job;
  job.type = QuantType::Weight;
  job.config.quantizable_op_type = types_in(model.graph, options.quantizable_op_type);
  job.weight.bits = options.weight_bits;
  job.weight.symmetric = true;
  job.weight.per_channel = options.weight_quantize_type == "channel_wise_abs_max";
  job.weight.observer = "abs_max";
  job.weight.bias_correction = false;
  return with_outputs([&](Outputs& outputs) {
    const std::string out = file_in("quantized_model");
    QuantizeReport report = quantize(in, out, job, context, outputs);
    if (options.generate_test_model) {
      const std::string test = file_in("test_model");
      writes_model(outputs, test, "the test model");
      write_test_model(model, job, test, context, outputs);
    }
    return report;
  });
}

}  // namespace quench
