// SPDX-License-Identifier: Apache-2.0
// The conformance cases of the ONNX project: models with input and output tensors.
#include "conformance/cases.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "support/tensor_file.h"

namespace quench::test {
namespace {

namespace fs = std::filesystem;

/// What ONNX's own backend test runner allows.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-5;

std::vector<fs::path> data_sets(const Case& which) {
  std::vector<fs::path> result;
  for (const auto& entry : fs::directory_iterator(which.folder)) {
    if (entry.path().filename().string().starts_with("test_data_set_")) {
      result.push_back(entry.path());
    }
  }
  std::ranges::sort(result);
  return result;
}

/// ONNX's test data keeps bfloat16 as the bits in uint16.
Tensor as_declared(const Tensor& tensor, DType dtype) {
  if (dtype != DType::BFloat16 || tensor.dtype() != DType::UInt16) return tensor;
  return Tensor::view(dtype, tensor.shape(), tensor.bytes(), tensor.owner());
}

TensorMap read_all(const fs::path& set, const char* stem, const std::vector<Value>& values) {
  TensorMap result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const fs::path file = set / format("{}_{}.pb", stem, i);
    if (!fs::exists(file)) continue;
    result[values[i].name] = as_declared(read_tensor_file(file.string()), values[i].type.dtype);
  }
  return result;
}

bool close(double got, double expected, double relative, double absolute) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= absolute + relative * std::abs(expected);
}

std::vector<double> to_double(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::Float64);
  return {wide.data<double>().begin(), wide.data<double>().end()};
}

std::string compare_set(Session& session, const fs::path& set) {
  const TensorMap expected = read_all(set, "output", session.outputs());
  const TensorMap got = session.run(read_all(set, "input", session.inputs()));
  for (const auto& [name, tensor] : expected) {
    const std::string why = difference(got.at(name), tensor, kRelative, kAbsolute);
    if (!why.empty()) return format("output '{}': {}", name, why);
  }
  return {};
}

}  // namespace

std::vector<Case> list_cases(const fs::path& data) {
  std::vector<Case> cases;
  for (const char* group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    for (const auto& entry : fs::directory_iterator(data / group)) {
      if (!fs::exists(entry.path() / "model.onnx")) continue;
      cases.push_back({format("{}/{}", group, entry.path().filename().string()), entry.path()});
    }
  }
  std::ranges::sort(cases, {}, &Case::name);
  return cases;
}

Model load_case(const Case& which) {
  Model model = load((which.folder / "model.onnx").string());
  // The castlike models declare shapes that their own data contradicts. ONNX's runner does not look
  // at the shapes of inputs, so these cases are run without them.
  if (!which.name.starts_with("node/test_castlike_")) return model;
  for (const ValueId id : model.graph.inputs) model.graph[id].type.shape.reset();
  return model;
}

std::string difference(const Tensor& got, const Tensor& expected, double relative,
                       double absolute) {
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    return format("expected {} {}, got {} {}", name_of(expected.dtype()),
                  to_string(expected.shape()), name_of(got.dtype()), to_string(got.shape()));
  }
  if (!info(expected.dtype()).is_float) {
    return got == expected ? "" : "integers differ";
  }
  // The test data cuts bfloat16 off where ONNX says to round: one step of its 8 bits is allowed.
  constexpr double kBFloat16Step = 1.0 / 128;
  if (expected.dtype() == DType::BFloat16) relative = std::max(relative, kBFloat16Step);
  const std::vector<double> a = to_double(got);
  const std::vector<double> b = to_double(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (close(a[i], b[i], relative, absolute)) continue;
    return format("element {} is {}, expected {}", i, a[i], b[i]);
  }
  return {};
}

std::vector<TensorMap> case_inputs(const Case& which, const Session& session) {
  std::vector<TensorMap> result;
  for (const fs::path& set : data_sets(which)) {
    result.push_back(read_all(set, "input", session.inputs()));
  }
  return result;
}

Outcome run_case(const Case& which, const SessionOptions& options, const Context& context) {
  try {
    Session session(load_case(which), options, context);
    for (const fs::path& set : data_sets(which)) {
      const std::string why = compare_set(session, set);
      if (!why.empty()) return {Outcome::Kind::Wrong, why};
    }
    return {};
  } catch (const Error& error) {
    const bool unsupported = error.kind() == ErrorKind::Unsupported;
    return {unsupported ? Outcome::Kind::Unsupported : Outcome::Kind::Wrong, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::Kind::Wrong, error.what()};
  }
}

}  // namespace quench::test
