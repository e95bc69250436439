// SPDX-License-Identifier: Apache-2.0
// Models as Python sees them, and the files that jobs read and write for it.
#include "python/src/models.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "python/src/record.h"
#include "python/src/samples.h"
#include "python/src/tensors.h"
#include "quench/error.h"
#include "quench/evaluate.h"
#include "quench/formats.h"
#include "quench/nearest.h"
#include "quench/pack.h"
#include "quench/quant_config.h"

namespace quench::python {
namespace {

namespace fs = std::filesystem;

/// A node with names in place of numbers.
struct NodeView {
  std::string name;
  std::string op_type;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// An input or output.
struct ValueView {
  std::string name;
  std::string dtype;
  py::object shape;  ///< a number, a symbol or None for each dimension; None: unknown
};

py::object shape_of(const ValueType& type) {
  if (!type.shape) return py::none();
  py::list dims;
  for (const Dim& dim : *type.shape) {
    if (dim.known()) {
      dims.append(dim.value);
    } else {
      dims.append(dim.symbol.empty() ? py::object(py::none()) : py::str(dim.symbol));
    }
  }
  return dims;
}

ValueView view_of(const Value& value) {
  return {value.name, std::string(name_of(value.type.dtype)), shape_of(value.type)};
}

std::vector<ValueView> views_of(const std::vector<Value>& values) {
  std::vector<ValueView> views;
  for (const Value& value : values) views.push_back(view_of(value));
  return views;
}

std::vector<ValueView> outputs_of(const Model& model) {
  std::vector<ValueView> views;
  for (const ValueId id : model.graph.outputs) views.push_back(view_of(model.graph[id]));
  return views;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(id == kNoValue ? "" : graph[id].name);
  return names;
}

std::vector<NodeView> nodes_of(const Model& model) {
  std::vector<NodeView> views;
  for (const Node& node : model.graph.nodes) {
    // As skip_node takes it: a node without a name goes by what it makes.
    const std::vector<std::string> outputs = names_of(model.graph, node.outputs);
    const std::string& made = outputs.empty() ? node.name : outputs.front();
    views.push_back({node.name.empty() ? made : node.name, node.op_type, node.domain,
                     names_of(model.graph, node.inputs), outputs});
  }
  return views;
}

std::vector<std::string> constants_of(const Model& model) {
  std::vector<std::string> names;
  for (const Value& value : model.graph.values()) {
    if (value.constant) names.push_back(value.name);
  }
  return names;
}

py::object constant_of(const Model& model, const std::string& name) {
  const Tensor* tensor = model.graph.constant(model.graph.find(name));
  if (tensor != nullptr) return to_array(*tensor);
  throw Error(ErrorKind::Usage, fmt::format("the model has no constant '{}'{}", name,
                                            did_you_mean(name, constants_of(model))));
}

SharedModel load_model(const py::object& path, const std::string& model_filename,
                       const std::string& params_filename) {
  const std::string file = model_path(to_path(path), model_filename, params_filename);
  const py::gil_scoped_release release;
  return std::make_shared<const Model>(load(file));
}

void save_model(const py::object& given, const py::object& path, const py::object& external,
                bool encode) {
  if (!py::isinstance<Model>(given)) {
    throw Error(ErrorKind::Usage,
                fmt::format("save takes a quench.Model, as quench.load gives it; got {}",
                            std::string(py::str(py::type::of(given).attr("__name__")))));
  }
  const auto model = py::cast<SharedModel>(given);
  SaveOptions options;
  options.encode = encode;
  if (!external.is_none()) {
    options.data =
        py::cast<bool>(external) ? SaveOptions::Data::External : SaveOptions::Data::Inside;
  }
  const std::string file = to_path(path);
  const py::gil_scoped_release release;
  save(*model, file, options);
}

ModelSummary inspect_model(const py::object& model) {
  const ModelFile file(model);
  const py::gil_scoped_release release;
  return inspect(file.path());
}

std::vector<LintLine> lint_model(const py::object& model, const std::string& target) {
  const ModelFile file(model);
  const py::gil_scoped_release release;
  Model loaded = load(file.path());
  infer_types(loaded);
  return lint(loaded, target);
}

PackSummary pack_model(const py::object& model, const py::object& output, bool encode) {
  const ModelFile file(model);
  const std::string path = to_path(output);
  if (!path.ends_with(".qnch")) {
    throw Error(ErrorKind::Usage, fmt::format("'{}' does not end in .qnch; to write another format "
                                              "use quench.save",
                                              path));
  }
  const py::gil_scoped_release release;
  save(load(file.path()), path, {.encode = encode});
  return describe_packed(path);
}

void bind_views(py::module_& module) {
  Record<ValueView>(module, "Value", "An input or output of a model")
      .field("name", &ValueView::name)
      .field("dtype", &ValueView::dtype)
      .computed("shape", "list[int | str | None] | None",
                [](const ValueView& value) { return value.shape; });
  Record<NodeView>(module, "Node", "A node of a model's graph")
      .field("name", &NodeView::name)
      .field("op_type", &NodeView::op_type)
      .field("domain", &NodeView::domain)
      .field("inputs", &NodeView::inputs)
      .field("outputs", &NodeView::outputs);
  Record<LintLine>(module, "LintLine", "Whether a runtime runs a node on integers, and why not")
      .field("node", &LintLine::node)
      .field("op_type", &LintLine::op_type)
      .field("integer", &LintLine::integer)
      .field("reason", &LintLine::reason);
  Record<UnsupportedNode>(module, "UnsupportedNode", "A node that the engine cannot run")
      .field("node", &UnsupportedNode::node)
      .field("op_type", &UnsupportedNode::op_type)
      .field("reason", &UnsupportedNode::reason);
  Record<PackedCoding>(module, "PackedCoding", "What one coding holds of a packed file")
      .field("name", &PackedCoding::name)
      .field("streams", &PackedCoding::streams)
      .field("bytes", &PackedCoding::bytes)
      .field("stored", &PackedCoding::stored);
  Record<PackSummary>(module, "PackSummary", "What is in a packed file")
      .field("bytes", &PackSummary::bytes)
      .field("codings", &PackSummary::codings);
}

void bind_summary(py::module_& module) {
  using WeightBytes = ModelSummary::WeightBytes;
  Record<WeightBytes>(module, "WeightBytes", "The constants of one element type")
      .field("tensors", &WeightBytes::tensors)
      .field("elements", &WeightBytes::elements)
      .field("bytes", &WeightBytes::bytes);
  Record<ModelSummary>(module, "ModelSummary", "What inspect() tells of a model")
      .field("path", &ModelSummary::path)
      .field("bytes_on_disk", &ModelSummary::bytes_on_disk)
      .field("ir_version", &ModelSummary::ir_version)
      .field("opsets", &ModelSummary::opsets)
      .field("producer", &ModelSummary::producer)
      .computed("inputs", "list[Value]",
                [](const ModelSummary& summary) { return views_of(summary.inputs); })
      .computed("outputs", "list[Value]",
                [](const ModelSummary& summary) { return views_of(summary.outputs); })
      .field("op_counts", &ModelSummary::op_counts)
      .field("num_nodes", &ModelSummary::num_nodes)
      .field("num_parameters", &ModelSummary::num_parameters)
      .field("weights_by_type", &ModelSummary::weights_by_type)
      .field("unsupported", &ModelSummary::unsupported);
}

void bind_model(py::module_& module) {
  py::class_<Model, std::shared_ptr<Model>>(module, "Model",
                                            "A model in memory. Every function that takes a path "
                                            "of a model takes one of these, too.")
      .def_property_readonly("inputs",
                             [](const Model& model) { return views_of(inputs_of(model)); })
      .def_property_readonly("outputs", &outputs_of)
      .def_property_readonly("nodes", &nodes_of)
      .def_property_readonly("constants", &constants_of, "Names of the weights")
      .def_property_readonly("opsets", [](const Model& model) { return model.opsets; })
      .def_property_readonly("metadata",
                             [](const Model& model) {
                               return std::map<std::string, std::string>(model.metadata.begin(),
                                                                         model.metadata.end());
                             })
      .def("constant", &constant_of, py::arg("name"), "A weight as an array, not copied")
      .def(
          "dump", [](const Model& model) { return dump(model); },
          "The graph as text, a line for each value and node")
      .def("__repr__", [](const Model& model) {
        return fmt::format("<quench.Model of {} nodes>", model.graph.nodes.size());
      });
}

}  // namespace

ModelFile::ModelFile(const py::handle& model) {
  if (py::isinstance<Model>(model)) {
    make_temporary();
    const auto held = py::cast<std::shared_ptr<Model>>(model);
    const py::gil_scoped_release release;
    save(*held, path_);
    return;
  }
  if (!is_path(model)) {
    const std::string type = py::str(py::type::of(model).attr("__module__"));
    const bool paddle = type.starts_with("paddle");
    const bool torch = type.starts_with("torch");
    throw Error(ErrorKind::Usage,
                fmt::format("a model is a path or a quench.Model; got {}{}",
                            std::string(py::str(py::type::of(model).attr("__name__"))),
                            paddle  ? ": write it by paddle.jit.save, and give that path"
                            : torch ? ": write it by torch.onnx.export, and give that path"
                                    : ""));
  }
  path_ = to_path(model);
}

ModelFile ModelFile::to_write(const std::string& path) {
  ModelFile file;
  file.path_ = path;
  if (path.empty()) file.make_temporary();
  return file;
}

ModelFile::ModelFile(ModelFile&& other) noexcept
    : path_(std::exchange(other.path_, "")), folder_(std::exchange(other.folder_, "")) {}

ModelFile::~ModelFile() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void ModelFile::make_temporary() {
  std::string pattern = (fs::temp_directory_path() / "quench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorKind::Io, "cannot make a temporary folder in " +
                                   fs::temp_directory_path().string() + "; set TMPDIR");
  }
  folder_ = pattern;
  path_ = (fs::path(folder_) / "model.onnx").string();
}

std::vector<Value> inputs_of(const Model& model) {
  std::vector<Value> inputs;
  for (const ValueId id : model.graph.inputs) {
    if (!model.graph[id].constant) inputs.push_back(model.graph[id]);
  }
  return inputs;
}

std::vector<Value> inputs_of(const std::string& path) { return inputs_of(load(path)); }

void bind_models(py::module_& module) {
  bind_views(module);
  bind_summary(module);
  bind_model(module);
  module.def("load", &load_model, py::arg("path"), py::kw_only(), py::arg("model_filename") = "",
             py::arg("params_filename") = "",
             "Reads a model of any format. Its weights stay in the file until they are used.");
  module.def(
      "save", &save_model, py::arg("model"), py::arg("path"), py::kw_only(),
      py::arg("external") = py::none(), py::arg("encode") = true,
      "Writes a model: the extension says the format. external: weights in a file beside it, "
      "or inside; None: as it was read. encode: packed files (.qnch) are compressed.");
  module.def("inspect", &inspect_model, py::arg("model"), "What a model consists of");
  module.def("lint", &lint_model, py::arg("model"), py::arg("target") = "onnxruntime",
             "Which nodes a runtime will run on integers, and why not the others");
  module.def("pack", &pack_model, py::arg("model"), py::arg("output"), py::kw_only(),
             py::arg("encode") = true,
             "Stores a model in as few bytes as its numbers need (.qnch)");
}

}  // namespace quench::python
