// SPDX-License-Identifier: Apache-2.0
// quench.evaluate, compare and bench.
#include <fmt/format.h>

#include "python/src/bindings.h"
#include "python/src/samples.h"
#include "python/src/tensors.h"
#include "quench/evaluate.h"

namespace quench::python {
namespace {

DataOptions data_options(Keywords& words, const py::object& data, const std::string& model,
                         Call& call) {
  QuantizeOptions options;
  const std::string config = words.take_text("data_config");
  const py::object labels = words.take("labels");
  if (!config.empty()) options.data = read_data_section(config);
  words.apply(options, kForSamples, call);
  if (!data.is_none()) {
    set_data(options.data, data, is_path(data) ? std::vector<Value>() : inputs_of(model),
             {.samples = options.data.limit});
  }
  if (!labels.is_none()) set_labels(options.data, labels);
  return options.data;
}

CustomMetric custom_metric(const py::object& function, bool labelled, Call& call) {
  const py::object type_name = py::type::of(function).attr("__name__");
  CustomMetric metric;
  metric.name = py::str(py::getattr(function, "__name__", type_name));
  metric.needs_labels = py::cast<bool>(py::getattr(function, "needs_labels", py::bool_(labelled)));
  metric.value = [&call, function](const Tensor& actual, const Tensor& expected) {
    return call.callback([&] {
      return py::cast<double>(py::float_(function(to_array(actual), to_array(expected))));
    });
  };
  return metric;
}

void add_metrics(EvaluateOptions& options, const py::object& metrics, Call& call) {
  if (metrics.is_none()) return;
  const bool several = py::isinstance<py::list>(metrics) || py::isinstance<py::tuple>(metrics);
  const py::list all = several ? py::list(metrics) : py::list(py::make_tuple(metrics));
  for (const py::handle each : all) {
    if (py::isinstance<py::str>(each)) {
      options.metrics.push_back(py::cast<std::string>(each));
    } else if (PyCallable_Check(each.ptr()) != 0) {
      options.custom_metrics.push_back(
          custom_metric(py::reinterpret_borrow<py::object>(each), options.reference.empty(), call));
    } else {
      throw Error(ErrorKind::Usage,
                  fmt::format("a metric is a name of quench list metrics or a callable; got {}",
                              std::string(py::repr(each))));
    }
  }
}

EvaluateResult evaluate_model(const py::object& model, const py::object& data,
                              const py::object& metrics, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_shared_call();
  const ModelFile file(model);
  EvaluateOptions options;
  const py::object reference = words.take("reference");
  std::unique_ptr<ModelFile> other;
  if (!reference.is_none()) {
    other = std::make_unique<ModelFile>(reference);
    options.reference = other->path();
  }
  options.output = words.take_text("output");
  options.batch = words.take_as("batch", options.batch);
  options.dequantize = dequantize_of(words.take_text("dequantize", "at-load"));
  options.rounding = rounding_of(words.take_text("rounding", "once"));
  add_metrics(options, metrics, *call);
  options.data = data_options(words, data, file.path(), *call);
  return call->run([&](const Context& context) { return evaluate(file.path(), options, context); });
}

CompareResult compare_models(const py::object& model, const py::object& reference,
                             const py::object& data, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_call();
  const ModelFile first(model);
  const ModelFile second(reference);
  EvaluateOptions options;
  options.metrics = words.take_as("metrics", std::vector<std::string>());
  options.output = words.take_text("output");
  options.batch = words.take_as("batch", options.batch);
  options.random.samples = words.take_as("random", options.random.samples);
  options.random.shapes = words.take_as("shape", options.random.shapes);
  options.data = data_options(words, data, second.path(), *call);
  return call->run([&](const Context& context) {
    return compare(first.path(), second.path(), options, context);
  });
}

BenchResult bench_model(const py::object& model, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_call();
  const ModelFile file(model);
  BenchOptions options;
  options.batch = words.take_as("batch", options.batch);
  options.warmup = words.take_as("warmup", options.warmup);
  options.runs = words.take_as("runs", options.runs);
  options.max_seconds = words.take_as("max_seconds", options.max_seconds);
  options.shapes = words.take_as("shape", options.shapes);
  options.profile = words.take_as("profile", options.profile);
  options.dequantize = dequantize_of(words.take_text("dequantize", "at-load"));
  words.expect_none();
  return call->run([&](const Context& context) { return bench(file.path(), options, context); });
}

constexpr const char* kEvaluate =
    "Scores a model.\n\n"
    "    model: path of a model, or a quench.Model\n"
    "    data, labels: samples and their class indices, as for quantize()\n"
    "    metrics: a name of `quench list metrics` or a callable(actual, expected) that gives a\n"
    "        number, or a list of these. A callable gets all outputs and all labels at once, or,\n"
    "        with a reference, that model's outputs; its attribute needs_labels decides for both\n"
    "    reference: a model whose outputs are the expected ones\n"
    "    output: the output to score; batch: samples a run; dequantize, rounding: as for Session\n"
    "    threads, seed, progress, device, precision, max_memory_mb, distributed: as for "
    "quantize()\n\nOptions:\n{}";
constexpr const char* kCompare =
    "Compares two models by output and, where names match, by layer.\n\n"
    "    model, reference: paths or quench.Model\n"
    "    data: samples; None: random ones, as many as `random` says, of the `shape` given\n"
    "    metrics: names of `quench list metrics`; output, batch, threads, seed, progress,\n"
    "        device, precision, max_memory_mb\n\n"
    "Options:\n{}";

}  // namespace

void bind_scoring(py::module_& module) {
  static const std::string evaluate_doc =
      fmt::format(fmt::runtime(kEvaluate), options_doc(kForSamples));
  module.def("evaluate", &evaluate_model, py::arg("model"), py::arg("data") = py::none(),
             py::arg("metrics") = py::none(), evaluate_doc.c_str());
  static const std::string compare_doc =
      fmt::format(fmt::runtime(kCompare), options_doc(kForSamples));
  module.def("compare", &compare_models, py::arg("model"), py::arg("reference"),
             py::arg("data") = py::none(), compare_doc.c_str());
  module.def("bench", &bench_model, py::arg("model"),
             "Times a model on random inputs.\n\n    batch, warmup, runs, max_seconds, shape (by "
             "input), profile (times of every step), dequantize, threads, seed, device, "
             "precision, max_memory_mb");
}

}  // namespace quench::python
