// SPDX-License-Identifier: Apache-2.0
// quench.quantize and calibrate.
#include "quench/jobs.h"

#include <fmt/format.h>

#include "python/src/bindings.h"
#include "python/src/record.h"
#include "python/src/samples.h"
#include "quench/converter_lite.h"
#include "quench/training_defaults.h"

namespace quench::python {
namespace {

/// The settings or the defaults, then the configuration file, then the arguments.
QuantizeOptions options_from(Keywords& words, unsigned job, const QuantizeOptions& defaults,
                             Call& call) {
  const std::string config = words.take_text("config");
  const std::string settings = words.take_text("settings");
  const std::string data_config = words.take_text("data_config");
  if (!config.empty() && !settings.empty()) {
    throw Error(ErrorKind::Usage, "give config or settings, not both");
  }
  QuantizeOptions options = settings.empty() ? defaults : read_settings(settings);
  const auto lay_over = [&](QuantizeOptions& read) {
    if (!data_config.empty()) read.data = read_data_section(data_config);
    words.apply(read, job, call);
  };
  if (!config.empty()) return read_config(config, std::move(options), lay_over);
  lay_over(options);
  return options;
}

struct QuantizeResult {
  QuantizeReport report;
  std::string path;   ///< empty: nowhere
  SharedModel model;  ///< loaded when it is asked for
};

SharedModel model_of(QuantizeResult& result) {
  if (!result.model) {
    const py::gil_scoped_release release;
    result.model = std::make_shared<const Model>(load(result.path));
  }
  return result.model;
}

QuantizeResult run_quantize(JobCall& job, const std::string& output) {
  const bool writes = job.call.context().writes();
  if (output.empty() && job.call.context().ranks) {
    throw Error(ErrorKind::Usage,
                "give output: of processes that share a job one alone has the result");
  }
  const ModelFile out = ModelFile::to_write(output);
  QuantizeResult result;
  result.report = job.call.run([&](const Context& context) {
    return quantize(job.model.path(), out.path(), job.options, context);
  });
  for (std::string& warning : result.report.warnings) {
    if (writes) job.call.context().warn(warning);
    warning = in_python(warning);
  }
  result.path = output;
  if (output.empty()) result.model = std::make_shared<const Model>(load(out.path()));
  return result;
}

QuantizeResult quantize_model(const py::object& model, const py::object& output,
                              const py::object& data, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const std::string report = words.take_text("report");
  const auto call = words.take_shared_call();
  JobCall job(*call, model, data, words, kForQuantize);
  refuse_idle_options(words.applied(), job.options);
  job.options.report_save_path = report;
  return run_quantize(job, output.is_none() ? "" : to_path(output));
}

QuantizeResult train_model(const py::object& model, const py::object& output,
                           const py::object& data, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  const std::string report = words.take_text("report");
  const auto call = words.take_shared_call();
  JobCall job(*call, model, data, words, kForTrain, training_defaults());
  choose_training_length(job.options.training);
  refuse_idle_options(words.applied(), job.options);
  job.options.report_save_path = report;
  return run_quantize(job, output.is_none() ? "" : to_path(output));
}

void calibrate(const py::object& model, const py::object& output, const py::object& data,
               const py::kwargs& kwargs) {
  Keywords words(kwargs);
  CalibrateOptions resume;
  resume.resume = words.take_as("resume", false);
  const std::string path = to_path(output);
  const auto call = words.take_shared_call();
  JobCall job(*call, model, data, words, kForCalibrate);
  refuse_idle_options(words.applied(), job.options);
  job.call.run([&](const Context& context) {
    calibrate_model(job.model.path(), path, job.options, context, resume);
  });
}

void bind_quantize_result(py::module_& module) {
  using Result = QuantizeResult;
  const auto of_report = [](auto QuantizeReport::*member) {
    return [member](const Result& result) { return result.report.*member; };
  };
  Record<Result>(module, "QuantizeResult", "What quantize() did, and the model it made")
      .field("path", &Result::path)
      .computed("calibration_samples", "int", of_report(&QuantizeReport::calibration_samples))
      .computed("validation_samples", "int", of_report(&QuantizeReport::validation_samples))
      .computed("integer_nodes", "int", of_report(&QuantizeReport::integer_nodes))
      .computed("pass_through_nodes", "int", of_report(&QuantizeReport::pass_through_nodes))
      .computed("float_layers", "list[FloatLayer]", of_report(&QuantizeReport::float_layers))
      .computed("bytes_before", "int", of_report(&QuantizeReport::bytes_before))
      .computed("bytes_after", "int", of_report(&QuantizeReport::bytes_after))
      .computed("activation_observer", "str", of_report(&QuantizeReport::activation_observer))
      .computed("outputs", "list[OutputScores]", of_report(&QuantizeReport::outputs))
      .computed("layers", "list[LayerScore]", of_report(&QuantizeReport::layers))
      .computed("weights", "list[WeightChoice]", of_report(&QuantizeReport::weights))
      .computed("warnings", "list[str]", of_report(&QuantizeReport::warnings))
      .computed("seconds", "float", of_report(&QuantizeReport::seconds))
      .computed("settings", "str", of_report(&QuantizeReport::settings))
      .type()
      .def_property_readonly("model", &model_of, "The quantised model");
}

}  // namespace

JobCall::JobCall(Call& the_call, const py::object& the_model, const py::object& data,
                 Keywords& words, unsigned job, const QuantizeOptions& defaults)
    : call(the_call), model(the_model) {
  const py::object labels = words.take("labels");
  options = options_from(words, job, defaults, call);
  for (const std::string& note : options.notes) call.context().warn(note);
  if (!data.is_none()) {
    const bool files = is_path(data);
    set_data(options.data, data, files ? std::vector<Value>() : inputs_of(model.path()),
             {.samples = options.data.limit});
  }
  if (!labels.is_none()) set_labels(options.data, labels);
}

std::string job_doc(const char* what, const char* own, unsigned job) {
  return fmt::format(
      "{}\n\n"
      "    model: path of a model, or a quench.Model\n"
      "    data: samples: a path as the command line takes it; an array whose rows they are; a "
      "dict\n"
      "        or tuple of arrays, one for each input; or an iterable of arrays, dicts or tuples\n"
      "    labels: class indices, as a file or an array\n{}"
      "    config, settings, data_config: files that hold options; arguments override them\n"
      "    threads: 0 means one for each core; seed: of everything random\n"
      "    device: 'cpu', 'cuda' or 'cuda:1'; precision: of a GPU, 'float', 'tf32' or 'half'\n"
      "    max_memory_mb: memory to stay under on the CPU\n"
      "    distributed: True: share the work with the other processes of torchrun, MPI, Slurm or\n"
      "        quench launch; or a dict that says what these do not: rank, size, address, port\n"
      "    progress: a callable(phase, done, total); True: a bar by tqdm; False: none;\n"
      "        None: a bar where there is a terminal and tqdm\n\nOptions:\n{}",
      what, own, options_doc(job));
}

void bind_jobs(py::module_& module) {
  bind_quantize_result(module);
  static const std::string quantize_doc =
      job_doc("Quantises a model.",
              "    output: where it is written; None: only QuantizeResult.model has it\n"
              "    report: HTML page of layers, ranges and errors\n"
              "    activation_observer may be a callable(statistic, spec) that gives a range\n",
              kForQuantize);
  module.def("quantize", &quantize_model, py::arg("model"), py::arg("output") = py::none(),
             py::arg("data") = py::none(), quantize_doc.c_str());
  static const std::string train_doc =
      job_doc("Trains a quantised model (quantisation-aware training).",
              "    output: where it is written; None: only QuantizeResult.model has it\n"
              "    report: HTML page of layers, ranges and errors\n",
              kForTrain);
  module.def("train", &train_model, py::arg("model"), py::arg("output") = py::none(),
             py::arg("data") = py::none(), train_doc.c_str());
  static const std::string calibrate_doc =
      job_doc("Collects statistics of activations, for quantize(stats=...).",
              "    output: the file of statistics\n"
              "    resume: go on from what an interrupted run left\n",
              kForCalibrate);
  module.def("calibrate", &calibrate, py::arg("model"), py::arg("output"),
             py::arg("data") = py::none(), calibrate_doc.c_str());
}

}  // namespace quench::python
