// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's calls: the C++ ones, with arguments from Python.
#include "quench/paddleslim.h"

#include <fmt/format.h>

#include "python/src/bindings.h"
#include "python/src/samples.h"
#include "python/src/tensors.h"
#include "quench/formats.h"
#include "quench/observers.h"
#include "quench/paddleslim_analysis.h"
#include "quench/ptq.h"

namespace quench::python {
namespace {

using Setting = paddleslim::QuantConfig::Setting;

void take_config(Keywords& words, PtqConfig& config) {
  config.batch_size = words.take_as("batch_size", config.batch_size);
  config.batch_nums = words.take_as("batch_nums", config.batch_nums);
  config.algo = words.take_text("algo", config.algo);
  config.hist_percent = words.take_as("hist_percent", config.hist_percent);
  config.bias_correction = words.take_as("bias_correction", config.bias_correction);
  config.round_type = words.take_text("round_type", config.round_type);
  config.quantizable_op_type = words.take_as("quantizable_op_type", config.quantizable_op_type);
  config.is_full_quantize = words.take_as("is_full_quantize", config.is_full_quantize);
  config.weight_bits = words.take_as("weight_bits", config.weight_bits);
  config.activation_bits = words.take_as("activation_bits", config.activation_bits);
  config.weight_quantize_type =
      words.take_text("weight_quantize_type", config.weight_quantize_type);
  config.activation_quantize_type =
      words.take_text("activation_quantize_type", config.activation_quantize_type);
  config.skip_tensor_list = words.take_as("skip_tensor_list", config.skip_tensor_list);
  config.optimize_model = words.take_as("optimize_model", config.optimize_model);
  config.onnx_format = words.take_as("onnx_format", config.onnx_format);
  config.deploy_backend = words.take_text("deploy_backend");
}

/// What speaks of Paddle's runtime, not of the result.
void drop_runtime_words(Keywords& words) {
  for (const char* name : {"executor", "scope", "exe", "place", "freeze_model", "return_graph"}) {
    (void)words.take(name);
  }
}

/// Samples from the one of three arguments that is given. The loader's own batches count.
void take_samples(Keywords& words, DataOptions& data, PtqConfig& config, const std::string& model) {
  const py::object loader = words.take("data_loader");
  const py::object batches = words.take("batch_generator");
  const py::object samples = words.take("sample_generator");
  const int given =
      (loader.is_none() ? 0 : 1) + (batches.is_none() ? 0 : 1) + (samples.is_none() ? 0 : 1);
  if (given != 1) {
    throw Error(ErrorKind::Usage,
                fmt::format("give one of data_loader, batch_generator and sample_generator to "
                            "calibrate with; {} are given",
                            given));
  }
  const py::object& source = !loader.is_none() ? loader : !batches.is_none() ? batches : samples;
  if (is_path(source)) {
    data.path = to_path(source);
    return;
  }
  Taken taken;
  taken.items = config.batch_nums;
  taken.rows = !samples.is_none();
  if (taken.rows) taken.items *= config.batch_size;
  config.batch_nums = 0;
  set_data(data, source, inputs_of(model), taken);
}

std::string take_model(Keywords& words, std::string& model_dir, std::string& model_filename,
                       std::string& params_filename) {
  model_dir = words.take_text("model_dir");
  model_filename = words.take_text("model_filename");
  params_filename = words.take_text("params_filename");
  return model_path(model_dir, model_filename, params_filename);
}

void post_static(const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_call();
  drop_runtime_words(words);
  QuantPostStaticOptions options;
  const std::string model =
      take_model(words, options.model_dir, options.model_filename, options.params_filename);
  options.quantize_model_path = words.take_text("quantize_model_path");
  options.save_model_filename = words.take_text("save_model_filename");
  options.save_params_filename = words.take_text("save_params_filename");
  take_config(words, options);
  take_samples(words, options.data_loader, options, model);
  words.expect_none();
  const QuantizeReport report =
      call->run([&](const Context& context) { return quant_post_static(options, context); });
  for (const std::string& warning : report.warnings) call->context().warn(warning);
}

void post_dynamic(const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const auto call = words.take_call();
  QuantPostDynamicOptions options;
  (void)take_model(words, options.model_dir, options.model_filename, options.params_filename);
  options.save_model_dir = words.take_text("save_model_dir");
  options.save_model_filename = words.take_text("save_model_filename");
  options.save_params_filename = words.take_text("save_params_filename");
  options.quantizable_op_type = words.take_as("quantizable_op_type", options.quantizable_op_type);
  options.weight_bits = words.take_as("weight_bits", options.weight_bits);
  options.generate_test_model = words.take_as("generate_test_model", false);
  options.weight_quantize_type =
      words.take_text("weight_quantize_type", options.weight_quantize_type);
  options.threshold_rate = words.take_as("threshold_rate", 0.0);
  words.expect_none();
  call->run([&](const Context& context) { return quant_post_dynamic(options, context); });
}

/// What all of PaddleSlim's analyses take, but for their models.
template <typename Options>
void take_analysis(Keywords& words, Call& call, Options& options, PtqConfig& config,
                   const char* config_name, const std::string& model) {
  if (config_name != nullptr) {
    const py::object given = words.take(config_name);
    if (!given.is_none()) {
      Keywords keys{py::kwargs(given)};
      take_config(keys, config);
      keys.expect_none();
    }
  }
  const py::object function = words.take("eval_function");
  if (!function.is_none()) options.eval_function = eval_function(function, call);
  take_samples(words, options.data_loader, config, model);
  options.save_dir = words.take_text("save_dir", options.save_dir);
  options.resume = words.take_as("resume", false);
  words.expect_none();
}

void take(Keywords& words, Call& call, AnalysisPtqOptions& options) {
  const std::string model =
      take_model(words, options.model_dir, options.model_filename, options.params_filename);
  take_analysis(words, call, options, options.ptq_config, "ptq_config", model);
}

void take(Keywords& words, Call& call, AnalysisOptions& options) {
  options.float_model_dir = words.take_text("float_model_dir");
  options.quant_model_dir = words.take_text("quant_model_dir");
  options.model_filename = words.take_text("model_filename");
  options.params_filename = words.take_text("params_filename");
  take_analysis(
      words, call, options, options.quant_config, "quant_config",
      model_path(options.float_model_dir, options.model_filename, options.params_filename));
}

void take(Keywords& words, Call& call, AnalysisQatOptions& options) {
  options.quant_model_dir = words.take_text("quant_model_dir");
  options.float_model_dir = words.take_text("float_model_dir");
  options.model_filename = words.take_text("model_filename");
  options.params_filename = words.take_text("params_filename");
  options.quantizable_op_type = words.take_as("quantizable_op_type", options.quantizable_op_type);
  const py::object known = words.take("qat_metric");
  if (!known.is_none()) options.qat_metric = known.cast<double>();
  PtqConfig unused;
  take_analysis(
      words, call, options, unused, nullptr,
      model_path(options.float_model_dir, options.model_filename, options.params_filename));
}

/// An analysis of PaddleSlim's with a call for each of its methods.
template <typename Tool, typename Options>
class Analysing {
 public:
  explicit Analysing(const py::kwargs& kwargs) {
    Keywords words(kwargs);
    call_ = words.take_call();
    take(words, *call_, options_);
  }
  template <typename Method, typename... Arguments>
  auto run(const Method& method, const Arguments&... arguments) {
    return call_->run(
        [&](const Context& context) { return (Tool(options_, context).*method)(arguments...); });
  }

 private:
  Options options_;
  std::unique_ptr<Call> call_;
};

template <typename Tool, typename Options>
void bind_analysis(py::module_& module, const char* name) {
  using Class = Analysing<Tool, Options>;
  py::class_<Class>(module, name)
      .def(py::init<const py::kwargs&>())
      .def("statistical_analyse", [](Class& a) { return a.run(&Tool::statistical_analyse); })
      .def("metric_error_analyse", [](Class& a) { return a.run(&Tool::metric_error_analyse); })
      .def(
          "get_target_quant_model",
          [](Class& a, double target) { return a.run(&Tool::get_target_quant_model, target); },
          py::arg("target_metric"));
}

/// Names of layers or types: one, several, or a class of Paddle's, which stands for its name.
std::vector<std::string> names_of(const py::object& given) {
  const bool several = py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given);
  const py::list all = several ? py::list(given) : py::list(py::make_tuple(given));
  std::vector<std::string> names;
  for (const py::handle each : all) {
    const bool type = PyType_Check(each.ptr()) != 0;
    names.push_back(type ? py::str(each.attr("__name__")) : py::str(each));
  }
  return names;
}

template <typename Type, typename... Arguments>
void bind_observer(py::module_& module, const char* name, const Arguments&... arguments) {
  py::class_<Type, Observer>(module, name).def(py::init<int>(), arguments...);
}

void bind_observers(py::module_& module) {
  py::class_<Observer>(module, "Observer", "How a range is chosen, and the bits that stand for it")
      .def(py::init<std::string, int>(), py::arg("name"), py::arg("quant_bits") = 8)
      .def_readonly("name", &Observer::name)
      .def_readonly("quant_bits", &Observer::quant_bits);
  const auto bits = py::arg("quant_bits") = 8;
  bind_observer<AbsmaxObserver>(module, "AbsmaxObserver", bits);
  bind_observer<AVGObserver>(module, "AVGObserver", bits);
  bind_observer<MSEObserver>(module, "MSEObserver", bits);
  bind_observer<EMDObserver>(module, "EMDObserver", bits);
  py::class_<HistObserver, Observer>(module, "HistObserver")
      .def(
          py::init([](int quant_bits, int bins_count, double percent, const py::object&,
                      const py::object&) { return HistObserver(quant_bits, bins_count, percent); }),
          py::arg("quant_bits") = 8, py::arg("bins_count") = 2048, py::arg("percent") = 0.999,
          py::arg("sign") = py::none(), py::arg("symmetric") = py::none(),
          "sign and symmetric are the target's to say, and change nothing");
  py::class_<KLObserver, Observer>(module, "KLObserver")
      .def(py::init<int, int>(), py::arg("quant_bits") = 8, py::arg("bins_count") = 2048);
  bind_observer<AbsMaxChannelWiseWeightObserver>(module, "AbsMaxChannelWiseWeightObserver", bits);
  bind_observer<MSEChannelWiseWeightObserver>(module, "MSEChannelWiseWeightObserver", bits);
}

void bind_config(py::module_& module) {
  using Config = paddleslim::QuantConfig;
  const auto none = py::none();
  py::class_<Config>(module, "QuantConfig", "Which observers watch which layers")
      .def(py::init<const Setting&, const Setting&>(), py::arg("activation"), py::arg("weight"))
      .def(
          "add_layer_config",
          [](Config& config, const py::object& layer, const Setting& activation,
             const Setting& weight) {
            config.add_layer_config(names_of(layer), activation, weight);
          },
          py::arg("layer"), py::arg("activation") = none, py::arg("weight") = none)
      .def(
          "add_name_config",
          [](Config& config, const py::object& name, const Setting& activation,
             const Setting& weight) { config.add_name_config(names_of(name), activation, weight); },
          py::arg("layer_name"), py::arg("activation") = none, py::arg("weight") = none)
      .def(
          "add_type_config",
          [](Config& config, const py::object& type, const Setting& activation,
             const Setting& weight) { config.add_type_config(names_of(type), activation, weight); },
          py::arg("layer_type"), py::arg("activation") = none, py::arg("weight") = none);
}

/// What a layer of Paddle's gives: one array, or a list of them.
py::object observe(ObservedModel& model, const py::args& arrays) {
  TensorMap feeds;
  if (arrays.size() == 1 && py::isinstance<py::dict>(arrays[0])) {
    feeds = to_tensors(arrays[0]);
  } else if (arrays.size() == model.inputs().size()) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      feeds[model.inputs()[i].name] = to_tensor(arrays[i]);
    }
  } else {
    throw Error(ErrorKind::BadData, fmt::format("the model has {} inputs, and {} arrays are given",
                                                model.inputs().size(), arrays.size()));
  }
  TensorMap results;
  {
    const py::gil_scoped_release release;
    results = model.run(feeds);
  }
  py::list outputs;
  for (const ValueId id : model.model().graph.outputs) {
    outputs.append(to_array(results.at(model.model().graph[id].name)));
  }
  return outputs.size() == 1 ? py::object(outputs[0]) : py::object(outputs);
}

std::shared_ptr<Model> loaded(const py::object& model) {
  if (py::isinstance<Model>(model)) return py::cast<std::shared_ptr<Model>>(model);
  return std::make_shared<Model>(load(ModelFile(model).path()));
}

template <typename Ptq>
std::shared_ptr<Model> convert_observed(const Ptq& ptq, const ObservedModel& observed, bool) {
  const py::gil_scoped_release release;
  return std::make_shared<Model>(ptq.convert(observed));
}

template <typename Ptq>
void save_observed(const Ptq& ptq, const ObservedModel& observed, const py::object& path,
                   const InputShapes& input_spec) {
  const std::string file = to_path(path);
  const py::gil_scoped_release release;
  ptq.save_quantized_model(observed, file, input_spec);
}

void save_model(const py::object& model, const py::object& path, const InputShapes& input_spec) {
  const std::shared_ptr<Model> found = loaded(model);
  const std::string file = to_path(path);
  const py::gil_scoped_release release;
  save_quantized_model(*found, file, input_spec);
}

void bind_ptq(py::module_& module) {
  py::class_<ObservedModel>(module, "ObservedModel",
                            "A float model that watches its activations while it runs")
      .def("__call__", &observe, "Runs a batch, given in the order of the inputs or as a dict")
      .def("eval", [](const py::object& self) { return self; })
      .def("train", [](const py::object& self) { return self; });
  const auto inplace = py::arg("inplace") = false;
  py::class_<PTQ>(module, "PTQ", "Quantises in steps: quantize, run, convert")
      .def(py::init([](const paddleslim::QuantConfig& config) { return PTQ(config); }),
           py::arg("config"))
      .def(
          "quantize",
          [](const PTQ& ptq, const py::object& model, bool) {
            return ptq.quantize(*loaded(model));
          },
          py::arg("model"), inplace)
      .def("convert", &convert_observed<PTQ>, py::arg("model"), inplace)
      .def("save_quantized_model", &save_observed<PTQ>, py::arg("model"), py::arg("path"),
           py::arg("input_spec") = InputShapes());
  py::class_<LegacyPTQ>(module, "LegacyPTQ", "PaddleSlim's older PTQ, by the names of quantizers")
      .def(py::init([](const std::string& activation, const std::string& weight, int quant_bits,
                       int bins, int upsample_bins, double hist_percent) {
             LegacyQuantizer watched = legacy_quantizer(activation);
             watched.quant_bits = quant_bits;
             watched.bins = bins;
             watched.upsample_bins = upsample_bins;
             watched.hist_percent = hist_percent;
             return LegacyPTQ(watched, legacy_quantizer(weight));
           }),
           py::arg("activation_quantizer") = "KLQuantizer",
           py::arg("weight_quantizer") = "PerChannelAbsmaxQuantizer", py::arg("quant_bits") = 8,
           py::arg("bins") = 1024, py::arg("upsample_bins") = 64, py::arg("hist_percent") = 0.99999,
           "As in PaddleSlim the numbers are the activation quantizer's; upsample_bins changes "
           "nothing: histograms are merged without loss")
      .def(
          "quantize",
          [](const LegacyPTQ& ptq, const py::object& model, bool, bool fuse,
             const std::vector<std::vector<std::string>>& fuse_list) {
            return ptq.quantize(*loaded(model), fuse, fuse_list);
          },
          py::arg("model"), inplace, py::arg("fuse") = false,
          py::arg("fuse_list") = std::vector<std::vector<std::string>>())
      .def("convert", &convert_observed<LegacyPTQ>, py::arg("model"), inplace)
      .def("save_quantized_model", &save_observed<LegacyPTQ>, py::arg("model"), py::arg("path"),
           py::arg("input_spec") = InputShapes());
}

}  // namespace

void bind_paddleslim(py::module_& module) {
  py::module_ part = module.def_submodule("paddleslim");
  part.def("quant_post_static", &post_static);
  part.def("quant_post_dynamic", &post_dynamic);
  part.def("save_quantized_model", &save_model, py::arg("model"), py::arg("path"),
           py::arg("input_spec") = InputShapes());
  bind_observers(part);
  bind_config(part);
  bind_ptq(part);
  bind_analysis<AnalysisPTQ, AnalysisPtqOptions>(part, "AnalysisPTQ");
  bind_analysis<Analysis, AnalysisOptions>(part, "Analysis");
  using Trained = Analysing<AnalysisQAT, AnalysisQatOptions>;
  py::class_<Trained>(part, "AnalysisQAT")
      .def(py::init<const py::kwargs&>())
      .def("metric_error_analyse",
           [](Trained& a) { return a.run(&AnalysisQAT::metric_error_analyse); });
}

}  // namespace quench::python
