// SPDX-License-Identifier: Apache-2.0
// Runs a model once on tensors from files and writes what it computes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "data/folder.h"
#include "data/npy.h"
#include "evaluate/random_inputs.h"
#include "quench/data.h"
#include "quench/formats.h"
#include "quench/run.h"
#include "quench/session.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

bool is_made_up(const std::string& source) {
  return source == "zeros" || source == "ones" || source == "random" ||
         source.rfind("random:", 0) == 0;
}

std::uint64_t seed_of(const std::string& source, std::uint64_t otherwise) {
  if (source == "random") return otherwise;
  const std::string_view text = std::string_view(source).substr(std::string_view("random:").size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(ErrorKind::Usage, "'{}': the seed must be a whole number, as in random:7", source);
  }
  return seed;
}

Tensor make_up(const Value& input, const std::string& source, const Shape& shape,
               std::uint64_t seed) {
  if (input.type.kind != ValueType::Kind::Tensor || input.type.dtype == DType::String) {
    fail(ErrorKind::Unsupported, "input '{}' is {}; only numbers can be made up", input.name,
         to_string(input.type));
  }
  if (source == "zeros") return constant_tensor(input.type.dtype, shape, 0);
  if (source == "ones") return constant_tensor(input.type.dtype, shape, 1);
  std::mt19937_64 generator(seed_of(source, seed));
  return random_tensor(input.type.dtype, shape, generator);
}

/// The sources by input name; checks that each input has one and that no other name is given.
std::map<std::string, std::string> assign(const std::vector<Value>& inputs,
                                          std::map<std::string, std::string> sources) {
  const std::vector<std::string> names = names_of(inputs);
  if (const auto nameless = sources.find(""); nameless != sources.end()) {
    if (names.size() != 1 || sources.size() != 1) {
      fail(ErrorKind::Usage, "say which input '{}' is for: --input NAME={}", nameless->second,
           nameless->second);
    }
    return {{names.front(), nameless->second}};
  }
  for (const auto& [name, source] : sources) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(ErrorKind::BadData, "there is no input '{}'; the model has {}{}", name,
           fmt::join(names, ", "), did_you_mean(name, names));
    }
  }
  for (const Value& input : inputs) {
    if (!sources.contains(input.name)) {
      fail(ErrorKind::BadData, "input '{}' {} was not given; add --input {}=FILE.npy, or =random",
           input.name, to_string(input.type), input.name);
    }
  }
  return sources;
}

void check_fits(const Value& input, const Tensor& tensor, const std::string& source) {
  const ValueType& type = input.type;
  bool fits = type.dtype == DType::Undefined || type.dtype == tensor.dtype();
  if (type.shape) {
    fits = fits && type.shape->size() == tensor.shape().size();
    for (std::size_t i = 0; fits && i < type.shape->size(); ++i) {
      const Dim& dim = (*type.shape)[i];
      fits = !dim.known() || dim.value == tensor.shape()[i];
    }
  }
  if (!fits) {
    fail(ErrorKind::BadData, "input '{}' must be {}, but {} holds {}", input.name, to_string(type),
         source, to_string(ValueType::of(tensor)));
  }
}

TensorMap read_feeds(const std::vector<Value>& inputs, const RunOptions& options,
                     const Context& context) {
  const auto sources = assign(inputs, options.inputs);
  std::vector<Value> made_up;
  TensorMap feeds;
  for (const Value& input : inputs) {
    const std::string& source = sources.at(input.name);
    if (is_made_up(source)) {
      made_up.push_back(input);
      continue;
    }
    feeds[input.name] = read_npy(source);
    check_fits(input, feeds[input.name], source);
  }
  const auto shapes = resolve_shapes(made_up, options.shapes, 1);
  for (const Value& input : made_up) {
    feeds[input.name] = make_up(input, sources.at(input.name), shapes.at(input.name), context.seed);
  }
  return feeds;
}

std::vector<std::string> wanted_values(const Graph& graph, const std::vector<std::string>& taps) {
  std::vector<std::string> wanted = names_of(output_values(graph));
  for (const std::string& tap : taps) {
    if (graph.find(tap) == kNoValue) {
      const std::vector<std::string> names = names_of(graph.values());
      fail(ErrorKind::BadData, "there is no value '{}' to tap{}", tap, did_you_mean(tap, names));
    }
    if (std::find(wanted.begin(), wanted.end(), tap) == wanted.end()) wanted.push_back(tap);
  }
  return wanted;
}

RunValue describe(const std::string& name, const Tensor& tensor) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RunValue value{.name = name, .dtype = tensor.dtype(), .shape = tensor.shape(), .file = {}};
  value.min = value.max = value.mean = nan;
  if (tensor.dtype() == DType::String) return value;
  double sum = 0;
  std::int64_t count = 0;
  // Results may be as large as memory: one of floats is read where it lies.
  const bool is_float = tensor.dtype() == DType::Float32;
  const std::vector<float> converted = is_float ? std::vector<float>() : to_float(tensor);
  for (const float element : is_float ? tensor.data<float>() : std::span<const float>(converted)) {
    if (std::isnan(element)) continue;
    value.min = count == 0 ? element : std::min(value.min, static_cast<double>(element));
    value.max = count == 0 ? element : std::max(value.max, static_cast<double>(element));
    sum += element;
    ++count;
  }
  if (count > 0) value.mean = sum / static_cast<double>(count);
  return value;
}

/// A file name that any system takes, and that no other value has.
std::string file_name(const std::string& value_name, std::set<std::string>& taken) {
  std::string stem;
  for (const char c : value_name.substr(0, 200)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    stem += plain ? c : '_';
  }
  if (stem.empty() || stem.front() == '.') stem.insert(stem.begin(), '_');
  std::string name = stem + ".npy";
  for (int i = 1; !taken.insert(name).second; ++i) name = format("{}_{}.npy", stem, i);
  return name;
}

/// NumPy knows neither bfloat16 nor 4-bit integers; wider types hold them exactly.
Tensor for_numpy(const Tensor& tensor) {
  const DTypeInfo& type = info(tensor.dtype());
  if (!type.numpy.empty() || tensor.dtype() == DType::String) return tensor;
  if (type.is_float) return convert(tensor, DType::Float32);
  return convert(tensor, type.is_signed ? DType::Int8 : DType::UInt8);
}

void write_index(const std::vector<RunValue>& values, const std::string& path, Outputs& outputs) {
  nlohmann::ordered_json index;
  for (const RunValue& value : values) {
    index[value.name] = {
        {"file", value.file}, {"type", std::string(name_of(value.dtype))}, {"shape", value.shape}};
  }
  const std::string text =
      index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_text(path, text, outputs);
}

/// The files of the values; none may be one of the inputs.
std::map<std::string, std::string> name_files(const std::string& model_path,
                                              const RunOptions& options,
                                              const std::vector<std::string>& wanted,
                                              Outputs& outputs) {
  const fs::path dir(options.output_dir);
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) {
    fail(ErrorKind::Io, "the folder {} cannot be made: {}", dir.string(), error.message());
  }
  reads_model(outputs, model_path, "the model");
  for (const auto& [input, source] : options.inputs) {
    if (!is_made_up(source)) data::reads_samples(outputs, {.path = source});
  }
  std::map<std::string, std::string> files;
  std::set<std::string> taken;
  for (const std::string& name : wanted) {
    files[name] = file_name(name, taken);
    outputs.writes((dir / files[name]).string(), format("the value '{}'", name));
  }
  outputs.writes((dir / "index.json").string(), "the index");
  return files;
}

}  // namespace

std::vector<RunValue> run_model(const std::string& model_path, const RunOptions& options,
                                const Context& context) {
  Model model = load(model_path);
  // Names, files and shapes are checked first: the engine takes longer to load.
  const std::vector<std::string> wanted = wanted_values(model.graph, options.taps);
  const TensorMap feeds = read_feeds(required_inputs(model.graph), options, context);
  const fs::path dir(options.output_dir);
  Outputs outputs;
  std::map<std::string, std::string> files;
  if (!dir.empty()) files = name_files(model_path, options, wanted, outputs);
  Session session(
      std::move(model),
      {.taps = options.taps, .dequantize = options.dequantize, .rounding = options.rounding},
      context);
  const TensorMap results = session.run(feeds, wanted);
  std::vector<RunValue> values;
  for (const std::string& name : wanted) {
    const Tensor& result = results.at(name);
    try {
      values.push_back(describe(name, result));
      if (dir.empty()) continue;
      values.back().file = files.at(name);
      outputs.add(data::stage_npy(for_numpy(result), (dir / files.at(name)).string()));
    } catch (const std::bad_alloc&) {
      fail(ErrorKind::Unsupported, "there is not enough memory for '{}' of shape {}", name,
           to_string(result.shape()));
    }
  }
  if (!dir.empty()) write_index(values, (dir / "index.json").string(), outputs);
  outputs.commit();
  return values;
}

}  // namespace quench
