// SPDX-License-Identifier: Apache-2.0
// A MindIR file, and the files of parameters beside it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/format.h"
#include "formats/mindir/file.h"
#include "formats/mindir/reader.h"

namespace quench::mindir {
namespace {

namespace fs = std::filesystem;

wire::ModelData parse(std::span<const std::byte> file) {
  wire::ModelData model;
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    fail(ErrorKind::BadModel,
         "the file is no sound MindIR, is encrypted, or was cut short; get it again");
  }
  if (!model.has_graph() || model.graph().output_size() == 0) {
    fail(ErrorKind::BadModel, "the file has no graph; is it one of parameters alone?");
  }
  if (model.has_little_endian() && !model.little_endian()) {
    fail(ErrorKind::Unsupported, "its numbers are big-endian, which is not read");
  }
  return model;
}

/// The numbers of one of the lists of a parameter's scales.
std::vector<double> numbers(const Entries& attributes, std::string_view name) {
  std::vector<double> result;
  const auto found = attributes.find(name);
  if (found == attributes.end()) return result;
  for (const Entry& each : found->second.list) {
    result.push_back(each.kind == Entry::Kind::Int ? static_cast<double>(each.number) : each.real);
  }
  return result;
}

}  // namespace

std::string parameter_file(const std::string& model, const std::string& location) {
  const fs::path inside(location);
  const bool leaves = inside.is_absolute() || std::ranges::any_of(inside, [](const fs::path& part) {
                        return part == "..";
                      });
  if (leaves || location.empty()) {
    fail(ErrorKind::BadModel, "the model names parameters at '{}', outside its folder", location);
  }
  return (fs::path(model).parent_path() / inside).string();
}

ValueId dequantize(GraphMaker& make, const wire::TensorData& data, ValueId integers) {
  if (data.scales_size() == 0) return integers;
  const Entries given = entries_of(data.scales(0).attribute());
  const std::vector<double> scales = numbers(given, "scale_list");
  std::vector<double> zeros = numbers(given, "zero_point_list");
  const Tensor& tensor = *make.graph().constant(integers);
  if (scales.empty() || tensor.dtype() != DType::Int8) {
    if (info(tensor.dtype()).is_float) return integers;
    fail(ErrorKind::Unsupported, "it is quantised, but not to int8 with scales");
  }
  zeros.resize(scales.size(), 0);
  const auto axis_at = given.find("channel_axis");
  const std::int64_t axis = axis_at == given.end() ? 0 : axis_at->second.number;
  const bool fits = axis >= 0 && axis < tensor.rank() &&
                    tensor.shape()[static_cast<std::size_t>(axis)] == std::ssize(scales);
  if (scales.size() > 1 && !fits) {
    fail(ErrorKind::BadModel, "it has {} scales for the shape {}", scales.size(),
         to_string(tensor.shape()));
  }
  std::vector<float> steps;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const bool sound = std::isfinite(scales[i]) && scales[i] > 0 && std::abs(zeros[i]) <= 128;
    if (!sound) fail(ErrorKind::BadModel, "its scale {} is {}", i, scales[i]);
    steps.push_back(static_cast<float>(scales[i]));
    offsets.push_back(static_cast<std::int64_t>(zeros[i]));
  }
  const Shape shape = scales.size() == 1 ? Shape{} : Shape{std::ssize(scales)};
  NodeAttributes attributes;
  if (scales.size() > 1) attributes.emplace_back("axis", axis);
  const Tensor zero =
      convert(Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(offsets)), DType::Int8);
  return make.node(
      "DequantizeLinear",
      {integers, make.constant(Tensor::of<float>(shape, std::span<const float>(steps))),
       make.constant(zero)},
      attributes);
}

Model read_bytes(std::span<const std::byte> file, const std::string& path) {
  const wire::ModelData parsed = parse(file);
  Model model;
  constexpr std::int64_t kOpset = 17;
  model.opsets[""] = kOpset;
  model.producer_name = parsed.producer_name().empty() ? "MindSpore" : parsed.producer_name();
  // It is MindSpore's release, whoever wrote the file.
  if (model.producer_name == "MindSpore") model.producer_version = parsed.model_version();
  Reader(parsed, path, model.graph).run();
  compact(model.graph, std::vector<bool>(model.graph.nodes.size(), false));
  (void)infer_types(model);
  for (const ValueId id : model.graph.outputs) {
    Value& value = model.graph[id];
    if (value.type.kind == ValueType::Kind::Unknown) value.type = ValueType::tensor(DType::Float32);
  }
  verify(model);
  return model;
}

std::vector<std::string> data_files(const ModelFiles& files) {
  std::vector<std::string> found;
  try {
    const auto file = MappedFile::open(files.model);
    const wire::ModelData model = parse(file->bytes());
    for (const wire::TensorData& each : model.graph().parameter()) {
      if (each.external_data().location().empty()) continue;
      const std::string path = parameter_file(files.model, each.external_data().location());
      if (std::ranges::find(found, path) == found.end()) found.push_back(path);
    }
  } catch (const Error&) {
    return {};
  }
  return found;
}

/// The version as text, then a producer or what else a model begins with.
bool is_mindir(std::span<const std::byte> file) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.size() < 8 || bytes[0] != '\x0a') return false;
  const auto size = static_cast<unsigned char>(bytes[1]);
  if (size == 0 || size > 16 || bytes.size() < size + 4U) return false;
  const bool version = std::ranges::all_of(
      bytes.substr(2, size), [](char each) { return (each >= '0' && each <= '9') || each == '.'; });
  const char next = bytes[size + 2U];
  return version &&
         (next == '\x12' || next == '\x1a' || next == '\x22' || next == '\x2a' || next == '\x3a');
}

}  // namespace quench::mindir
