// SPDX-License-Identifier: Apache-2.0
// Paddle Inference's predictor: names, handles, and one session behind them.
#include "quench/predictor.h"

#include <filesystem>

#include "base/format.h"
#include "base/nearest.h"
#include "quench/formats.h"

namespace quench {
namespace {

std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

std::unique_ptr<TensorHandle> handle(const std::vector<Value>& values, const std::string& name,
                                     std::string_view kind, TensorMap& tensors) {
  for (const Value& value : values) {
    if (value.name == name) return std::make_unique<TensorHandle>(tensors[name], value);
  }
  const std::vector<std::string> names = names_of(values);
  fail(ErrorKind::Usage, "the model has no {} '{}'{}; it has {}", kind, name,
       did_you_mean(name, names), fmt::join(names, ", "));
}

Session open(const Config& config) {
  if (config.model().empty()) fail(ErrorKind::Usage, "the config names no model: call set_model()");
  return {load(config.model()), config.session_options(), config.context()};
}

}  // namespace

Config::Config(const std::string& model) { set_model(model); }
Config::Config(const std::string& model, const std::string& params) { set_model(model, params); }

void Config::set_model(const std::string& model, const std::string& params) {
  // A name alone stands for the file beside the model.
  std::error_code error;
  const bool path = !params.empty() && std::filesystem::exists(params, error);
  model_ = model_path(model, "", path ? std::filesystem::absolute(params).string() : params);
}

void Config::set_cpu_math_library_num_threads(int threads) {
  if (threads < 0) fail(ErrorKind::Usage, "threads are at least 0, got {}", threads);
  context_.threads = threads;
}

void TensorHandle::reshape(Shape shape) {
  if (!num_elements(shape)) {
    fail(ErrorKind::Usage, "'{}' cannot have the shape {}", name(), to_string(shape));
  }
  wanted_ = std::move(shape);
}

Shape TensorHandle::shape() const {
  if (wanted_) return *wanted_;
  if (tensor_->defined()) return tensor_->shape();
  Shape shape;
  if (!value_.type.shape) return shape;
  for (const Dim& dim : *value_.type.shape) shape.push_back(dim.value);
  return shape;
}

const Tensor& TensorHandle::tensor() const {
  if (tensor_->defined()) return *tensor_;
  fail(ErrorKind::Usage, "'{}' holds nothing yet: copy_from_cpu() for inputs, run() for outputs",
       name());
}

Shape TensorHandle::shape_for(std::int64_t size) const {
  Shape shape = this->shape();
  if (num_elements(shape) == size) return shape;
  fail(ErrorKind::Usage,
       "'{}' has the shape {}, but {} elements are copied in; call reshape() first", name(),
       to_string(shape), size);
}

Predictor::Predictor(const Config& config) : session_(open(config)) {}

std::vector<std::string> Predictor::get_input_names() const { return names_of(session_.inputs()); }
std::vector<std::string> Predictor::get_output_names() const {
  return names_of(session_.outputs());
}

std::unique_ptr<TensorHandle> Predictor::get_input_handle(const std::string& name) {
  return handle(session_.inputs(), name, "input", inputs_);
}
std::unique_ptr<TensorHandle> Predictor::get_output_handle(const std::string& name) {
  return handle(session_.outputs(), name, "output", outputs_);
}

void Predictor::run() {
  for (const std::string& name : get_input_names()) {
    const auto found = inputs_.find(name);
    if (found != inputs_.end() && found->second.defined()) continue;
    fail(ErrorKind::Usage, "input '{}' holds nothing yet: call copy_from_cpu() before run()", name);
  }
  // Handles point at the tensors that they had: these are filled, not replaced.
  for (auto& [name, tensor] : session_.run(inputs_)) outputs_[name] = std::move(tensor);
}

std::shared_ptr<Predictor> create_predictor(const Config& config) {
  return std::make_shared<Predictor>(config);
}

}  // namespace quench
