// SPDX-License-Identifier: Apache-2.0
// What jobs find, as Python sees it.
#include "python/src/results.h"

#include "python/src/record.h"
#include "python/src/tensors.h"
#include "quench/analyze.h"
#include "quench/quantize.h"

namespace quench::python {
namespace {

py::object plain(const py::handle& value) {
  if (py::hasattr(value, "to_dict")) return value.attr("to_dict")();
  if (py::isinstance<py::list>(value)) {
    py::list items;
    for (const py::handle item : value) items.append(plain(item));
    return items;
  }
  if (py::isinstance<py::dict>(value)) {
    py::dict items;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(value))
      items[key] = plain(item);
    return items;
  }
  return py::reinterpret_borrow<py::object>(value);
}

void bind_scores(py::module_& module) {
  Record<OutputScores>(module, "OutputScores", "Metric values of one output or layer")
      .field("output", &OutputScores::output)
      .field("scores", &OutputScores::scores);
  Record<EvaluateResult>(module, "EvaluateResult", "What evaluate() found")
      .field("samples", &EvaluateResult::samples)
      .field("batch", &EvaluateResult::batch)
      .field("seconds", &EvaluateResult::seconds)
      .field("outputs", &EvaluateResult::outputs)
      .computed("scores", "dict[str, float]", [](const EvaluateResult& result) {
        return result.outputs.empty() ? std::map<std::string, double>{}
                                      : result.outputs.front().scores;
      });
  Record<CompareResult>(module, "CompareResult", "What compare() found")
      .field("samples", &CompareResult::samples)
      .field("outputs", &CompareResult::outputs)
      .field("layers", &CompareResult::layers)
      .field("padded", &CompareResult::padded)
      .field("equalized", &CompareResult::equalized);
  Record<BenchStep>(module, "BenchStep", "One step of a profiled model")
      .field("node", &BenchStep::node)
      .field("op_type", &BenchStep::op_type)
      .field("start_ms", &BenchStep::start_ms)
      .field("ms", &BenchStep::ms)
      .field("mean_ms", &BenchStep::mean_ms);
  Record<BenchResult>(module, "BenchResult", "How long a model takes")
      .field("model", &BenchResult::model)
      .field("batch", &BenchResult::batch)
      .field("threads", &BenchResult::threads)
      .field("runs", &BenchResult::runs)
      .field("median_ms", &BenchResult::median_ms)
      .field("p95_ms", &BenchResult::p95_ms)
      .field("min_ms", &BenchResult::min_ms)
      .field("samples_per_second", &BenchResult::samples_per_second)
      .field("load_ms", &BenchResult::load_ms)
      .field("peak_rss_mb", &BenchResult::peak_rss_mb)
      .field("steps", &BenchResult::steps);
}

void bind_quantize(py::module_& module) {
  Record<FloatLayer>(module, "FloatLayer", "A layer left in float, and why")
      .field("node", &FloatLayer::node)
      .field("op_type", &FloatLayer::op_type)
      .field("reason", &FloatLayer::reason);
  Record<LayerScore>(module, "LayerScore", "How near a layer is to that of the float model, in dB")
      .field("node", &LayerScore::node)
      .field("op_type", &LayerScore::op_type)
      .field("value", &LayerScore::value)
      .field("own_sqnr", &LayerScore::own_sqnr)
      .field("own_cosine", &LayerScore::own_cosine)
      .field("accumulated_sqnr", &LayerScore::accumulated_sqnr)
      .field("accumulated_cosine", &LayerScore::accumulated_cosine)
      .field("output_sqnr", &LayerScore::output_sqnr);
  Record<WeightChoice>(module, "WeightChoice", "How one weight is stored")
      .field("node", &WeightChoice::node)
      .field("op_type", &WeightChoice::op_type)
      .field("weight", &WeightChoice::weight)
      .field("bits", &WeightChoice::bits)
      .field("elements", &WeightChoice::elements)
      .field("bytes", &WeightChoice::bytes)
      .field("error", &WeightChoice::error)
      .field("method", &WeightChoice::method);
}

void bind_analysis(py::module_& module) {
  Record<LayerSensitivity>(module, "LayerSensitivity", "What quantising one layer costs")
      .field("layer", &LayerSensitivity::layer)
      .field("op_type", &LayerSensitivity::op_type)
      .field("weight", &LayerSensitivity::weight)
      .field("metric", &LayerSensitivity::metric)
      .field("sqnr", &LayerSensitivity::sqnr)
      .field("samples", &LayerSensitivity::samples);
  Record<SensitivityResult>(module, "SensitivityResult", "Every layer in turn, the worst first")
      .field("metric", &SensitivityResult::metric)
      .field("higher_is_better", &SensitivityResult::higher_is_better)
      .field("reverse", &SensitivityResult::reverse)
      .field("float_metric", &SensitivityResult::float_metric)
      .field("quantized_metric", &SensitivityResult::quantized_metric)
      .field("layers", &SensitivityResult::layers)
      .field("samples", &SensitivityResult::samples)
      .field("resumed", &SensitivityResult::resumed)
      .field("seconds", &SensitivityResult::seconds);
  Record<TargetResult>(module, "TargetResult", "The most quantised model that meets a metric")
      .field("metric", &TargetResult::metric)
      .field("at_least", &TargetResult::at_least)
      .field("met", &TargetResult::met)
      .field("value", &TargetResult::value)
      .field("float_metric", &TargetResult::float_metric)
      .field("quantized_metric", &TargetResult::quantized_metric)
      .field("in_float", &TargetResult::in_float)
      .field("weight_bits", &TargetResult::weight_bits)
      .field("layers", &TargetResult::layers)
      .field("tried", &TargetResult::tried)
      .field("evaluations", &TargetResult::evaluations)
      .field("samples", &TargetResult::samples)
      .field("seconds", &TargetResult::seconds);
  Record<StatisticsResult>(module, "StatisticsResult", "What the analysis of statistics looked at")
      .field("layers", &StatisticsResult::layers)
      .field("samples", &StatisticsResult::samples)
      .field("calibration_seconds", &StatisticsResult::calibration_seconds)
      .field("seconds", &StatisticsResult::seconds);
}

/// What an observer of the user's own looks at.
void bind_statistics(py::module_& module) {
  Record<QuantSpec>(module, "QuantSpec", "What is asked of a tensor's scale")
      .field("bits", &QuantSpec::bits)
      .field("is_signed", &QuantSpec::is_signed)
      .field("symmetric", &QuantSpec::symmetric)
      .field("narrow", &QuantSpec::narrow)
      .field("axis", &QuantSpec::axis)
      .field("observer", &QuantSpec::observer);
  Record<Statistic> record(module, "Statistic",
                           "What calibration saw of a tensor: extremes, moments and a histogram "
                           "whose bin i covers (first_bin + i) * bin_width and up");
  record.field("samples", &Statistic::samples)
      .field("count", &Statistic::count)
      .field("nans", &Statistic::nans)
      .field("infinities", &Statistic::infinities)
      .field("min", &Statistic::min)
      .field("max", &Statistic::max)
      .field("zeros", &Statistic::zeros)
      .field("bin_width", &Statistic::bin_width)
      .field("first_bin", &Statistic::first_bin)
      .computed("abs_max", "float", [](const Statistic& s) { return s.abs_max(); })
      .computed("mean", "float", [](const Statistic& s) { return s.mean(); })
      .computed("variance", "float", [](const Statistic& s) { return s.variance(); })
      .computed("bins", "numpy.ndarray", [](const Statistic& s) {
        return to_array(Tensor::of<std::int64_t>({static_cast<std::int64_t>(s.bins.size())},
                                                 std::span<const std::int64_t>(s.bins)));
      });
}

}  // namespace

py::str record_repr(const py::object& record) {
  const py::object type = py::type::of(record);
  std::string text = std::string(py::str(type.attr("__name__"))) + "(";
  const char* comma = "";
  for (const auto& [name, unused] : py::dict(type.attr(kFields))) {
    const py::object value = record.attr(name);
    std::string shown = py::repr(value);
    const bool is_long = py::isinstance<py::list>(value) && py::len(value) > 4;
    if (is_long) shown = "[... " + std::to_string(py::len(value)) + " ...]";
    text += comma + std::string(py::str(name)) + "=" + shown;
    comma = ", ";
  }
  return text + ")";
}

py::dict record_dict(const py::object& record) {
  py::dict fields;
  for (const auto& [name, unused] : py::dict(py::type::of(record).attr(kFields))) {
    fields[name] = plain(record.attr(name));
  }
  return fields;
}

void bind_results(py::module_& module) {
  bind_scores(module);
  bind_quantize(module);
  bind_analysis(module);
  bind_statistics(module);
}

}  // namespace quench::python
