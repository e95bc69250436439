// SPDX-License-Identifier: Apache-2.0
// Shapes for inputs whose dimensions are open, and seeded tensors to fill them.
#include "evaluate/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "base/nearest.h"

namespace quench {
namespace {

using Symbols = std::map<std::string, std::int64_t>;

/// Random inputs are for trying a model out: more than this is a slip of the keyboard.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

void check_size(const std::string& name, const Shape& shape) {
  const std::optional<std::int64_t> count = num_elements(shape);
  if (!count || *count > kMaxElements) {
    fail(ErrorKind::BadData, "input '{}': shape {} is too large for made-up data", name,
         to_string(shape));
  }
}

void check_given(const Value& input, const Shape& shape) {
  if (!input.type.shape) return;
  const std::vector<Dim>& dims = *input.type.shape;
  bool fits = dims.size() == shape.size();
  for (std::size_t i = 0; fits && i < dims.size(); ++i) {
    fits = shape[i] >= 0 && (!dims[i].known() || dims[i].value == shape[i]);
  }
  if (!fits) {
    fail(ErrorKind::BadData, "input '{}': the shape {} does not fit its type {}", input.name,
         to_string(shape), to_string(input.type));
  }
}

void bind_symbols(const Value& input, const Shape& shape, Symbols& symbols) {
  if (!input.type.shape) return;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim& dim = (*input.type.shape)[i];
    if (!dim.known() && !dim.symbol.empty()) symbols.try_emplace(dim.symbol, shape[i]);
  }
}

/// What to type for --shape: known dimensions as they are, the others as D1, D2.
std::string shape_hint(const Value& input, std::int64_t batch) {
  if (!input.type.shape) return "D0,D1,...";
  std::string hint;
  for (std::size_t i = 0; i < input.type.shape->size(); ++i) {
    const Dim& dim = (*input.type.shape)[i];
    if (i > 0) hint += ',';
    if (dim.known() || i == 0) {
      hint += std::to_string(dim.known() ? dim.value : batch);
    } else {
      hint += format("D{}", i);
    }
  }
  return hint;
}

Shape resolve(const Value& input, const Symbols& symbols, std::int64_t batch) {
  bool open = !input.type.shape;
  Shape shape;
  for (std::size_t i = 0; !open && i < input.type.shape->size(); ++i) {
    const Dim& dim = (*input.type.shape)[i];
    const auto bound = dim.symbol.empty() ? symbols.end() : symbols.find(dim.symbol);
    if (dim.known()) {
      shape.push_back(dim.value);
    } else if (bound != symbols.end()) {
      shape.push_back(bound->second);
    } else if (i == 0) {
      shape.push_back(batch);
    } else {
      open = true;
    }
  }
  if (open) {
    fail(ErrorKind::BadData,
         "input '{}' is {}, which leaves dimensions open; give them with --shape {}={}", input.name,
         to_string(input.type), input.name, shape_hint(input, batch));
  }
  return shape;
}

/// Box-Muller: the standard library's own normal distribution differs between platforms.
void fill_normal(std::span<float> dst, std::mt19937_64& generator) {
  const auto uniform = [&] { return (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53; };
  for (std::size_t i = 0; i < dst.size(); i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    dst[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < dst.size()) dst[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace

std::vector<Value> required_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId id : graph.inputs) {
    if (!graph[id].constant) inputs.push_back(graph[id]);
  }
  return inputs;
}

std::vector<Value> output_values(const Graph& graph) {
  std::vector<Value> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(graph[id]);
  return outputs;
}

std::vector<std::string> float_output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.outputs) {
    const DType dtype = graph[id].type.dtype;
    if (dtype == DType::Undefined || info(dtype).is_float) names.push_back(graph[id].name);
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

std::int64_t effective_batch(const std::vector<Value>& inputs, std::int64_t wanted) {
  for (const Value& input : inputs) {
    if (!input.type.shape || input.type.shape->empty()) continue;
    const Dim& first = input.type.shape->front();
    return first.known() && first.value > 0 ? first.value : wanted;
  }
  return wanted;
}

std::map<std::string, Shape> resolve_shapes(const std::vector<Value>& inputs,
                                            const std::map<std::string, Shape>& given,
                                            std::int64_t batch) {
  const std::vector<std::string> names = names_of(inputs);
  for (const auto& [name, shape] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(ErrorKind::BadData, "a shape was given for '{}', but the model has the inputs {}{}",
           name, fmt::join(names, ", "), did_you_mean(name, names));
    }
  }
  Symbols symbols;
  for (const Value& input : inputs) {
    const auto found = given.find(input.name);
    if (found == given.end()) continue;
    check_given(input, found->second);
    bind_symbols(input, found->second, symbols);
  }
  std::map<std::string, Shape> shapes;
  for (const Value& input : inputs) {
    const auto found = given.find(input.name);
    const Shape shape = found != given.end() ? found->second : resolve(input, symbols, batch);
    check_size(input.name, shape);
    shapes[input.name] = shape;
  }
  return shapes;
}

Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937_64& generator) {
  if (dtype == DType::Int8 || dtype == DType::UInt8) {
    Tensor result = Tensor::zeros(dtype, shape);
    for (std::byte& byte : result.mutable_bytes()) byte = static_cast<std::byte>(generator());
    return result;
  }
  Tensor floats = Tensor::zeros(DType::Float32, shape);
  const std::span<float> dst = floats.mutable_data<float>();
  if (info(dtype).is_float) {
    fill_normal(dst, generator);
  } else {
    for (float& element : dst) element = static_cast<float>(generator() >> 63);
  }
  return dtype == DType::Float32 ? floats : convert(floats, dtype);
}

Tensor constant_tensor(DType dtype, const Shape& shape, float value) {
  Tensor floats = Tensor::zeros(DType::Float32, shape);
  const std::span<float> dst = floats.mutable_data<float>();
  std::fill(dst.begin(), dst.end(), value);
  return dtype == DType::Float32 ? floats : convert(floats, dtype);
}

TensorMap random_feeds(const std::vector<Value>& inputs, const std::map<std::string, Shape>& shapes,
                       std::mt19937_64& generator) {
  TensorMap feeds;
  for (const Value& input : inputs) {
    if (input.type.dtype == DType::String || input.type.kind != ValueType::Kind::Tensor) {
      fail(ErrorKind::Unsupported, "input '{}' is {}; random data can be made for numbers only",
           input.name, to_string(input.type));
    }
    feeds[input.name] = random_tensor(input.type.dtype, shapes.at(input.name), generator);
  }
  return feeds;
}

}  // namespace quench
