// SPDX-License-Identifier: Apache-2.0
// quench.analyze: sensitivity, target search and statistics.
#include <fmt/format.h>

#include <cmath>

#include "python/src/bindings.h"
#include "python/src/samples.h"

namespace quench::python {
namespace {

AnalyzeOptions take_analysis(Keywords& words, Call& call) {
  AnalyzeOptions options;
  options.metric = words.take_text("metric");
  const py::object function = words.take("eval_function");
  if (!function.is_none()) options.eval_function = eval_function(function, call);
  options.save_dir = words.take_text("save_dir", options.save_dir);
  options.resume = words.take_as("resume", false);
  return options;
}

/// Samples to evaluate by, where they are not those of the calibration.
struct EvalSamples {
  explicit EvalSamples(Keywords& words)
      : data(words.take("eval_data")),
        labels(words.take("eval_labels")),
        limit(words.take_as<std::int64_t>("eval_limit", 0)) {}

  void set(AnalyzeOptions& options, const std::string& model) const {
    options.eval = options.quantize.data;
    if (limit > 0) options.eval.limit = limit;
    if (!data.is_none()) {
      options.eval.given = nullptr;
      options.eval.labels.clear();
      options.eval.limit = limit;
      set_data(options.eval, data, is_path(data) ? std::vector<Value>() : inputs_of(model),
               {.samples = limit});
    }
    if (!labels.is_none()) set_labels(options.eval, labels);
  }

  py::object data;
  py::object labels;
  std::int64_t limit;
};

py::object analyze_model(const py::object& model, const py::object& data, const std::string& kind,
                         const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_shared_call();
  AnalyzeOptions options = take_analysis(words, *call);
  const EvalSamples eval(words);
  const std::string report = words.take_text("report");
  SensitivityOptions sensitivity;
  TargetOptions target;
  if (kind == "sensitivity") {
    sensitivity.reverse = words.take_as("reverse", false);
    sensitivity.quick = words.take_as("quick", false);
    sensitivity.worst = words.take_as("worst", sensitivity.worst);
  } else if (kind == "target") {
    const py::object bar = words.take("at_least");
    if (bar.is_none()) throw Error(ErrorKind::Usage, "say what the metric must reach: at_least=X");
    target.at_least = py::cast<double>(py::float_(bar));
    target.raise_bits = words.take_as("raise_bits", 0);
    target.out_path = words.take_text("output");
  } else if (kind != "statistics") {
    throw Error(ErrorKind::Usage,
                fmt::format("kind is '{}'; expected sensitivity, target or statistics", kind));
  }
  QuantizeOptions defaults;
  defaults.batch = 8;
  JobCall job(*call, model, data, words, kForAnalyze, defaults);
  refuse_idle_options(words.applied(), job.options);
  options.quantize = job.options;
  options.quantize.report_save_path = report;
  eval.set(options, job.model.path());
  const std::string& path = job.model.path();
  if (kind == "target") {
    return py::cast(call->run(
        [&](const Context& context) { return analyze_target(path, options, target, context); }));
  }
  if (kind == "statistics" && call->context().ranks) {
    throw Error(ErrorKind::Usage, "statistics are looked at by one process; leave out distributed");
  }
  if (kind == "statistics") {
    return py::cast(call->run(
        [&](const Context& context) { return analyze_statistics(path, options, context); }));
  }
  return py::cast(call->run([&](const Context& context) {
    return analyze_sensitivity(path, options, sensitivity, context);
  }));
}

}  // namespace

EvalFunction eval_function(const py::object& function, Call& call) {
  if (PyCallable_Check(function.ptr()) == 0) {
    throw Error(ErrorKind::Usage,
                "eval_function must be callable: it gets a quench.Model and gives "
                "a number, higher is better");
  }
  return [function, &call](const Model& quantized) {
    return call.callback([&] {
      const auto copy = std::make_shared<Model>(quantized);
      const double value = py::cast<double>(py::float_(function(copy)));
      if (!std::isnan(value)) return value;
      throw Error(ErrorKind::BadData, "eval_function gave NaN; it must give a number");
    });
  };
}

void bind_analyze(py::module_& module) {
  static const std::string doc = job_doc(
      "Finds the layers that cost accuracy.",
      "    kind: 'sensitivity': each layer quantised in turn; 'target': the most quantised model\n"
      "        whose metric is at_least a number; 'statistics': tables and plots of all tensors\n"
      "    metric: a name of `quench list metrics`; or\n"
      "    eval_function: a callable that gets a quench.Model and gives a number, higher is "
      "better\n"
      "    eval_data, eval_labels, eval_limit: samples to evaluate by; None: those of data\n"
      "    save_dir: folder for what is found; resume: go on from there; report: HTML page\n"
      "    of sensitivity: reverse, quick, worst; of target: at_least, raise_bits, output\n",
      kForAnalyze);
  module.def("analyze", &analyze_model, py::arg("model"), py::arg("data") = py::none(),
             py::arg("kind") = "sensitivity", doc.c_str());
}

}  // namespace quench::python
