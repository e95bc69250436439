// SPDX-License-Identifier: Apache-2.0
// Paddle Inference's predictor, as a thin face over Session.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quench/session.h"

namespace quench {

/// Which model a predictor runs, and how.
class Config {
 public:
  Config() = default;
  /// A model by its folder or its file: Paddle's, ONNX, packed.
  explicit Config(const std::string& model);
  /// A program and the file of its parameters.
  Config(const std::string& model, const std::string& params);

  void set_model(const std::string& model, const std::string& params = "");
  const std::string& model() const noexcept { return model_; }
  /// Threads of the engine; 0: one for each core.
  void set_cpu_math_library_num_threads(int threads);
  int cpu_math_library_num_threads() const noexcept { return context_.threads; }
  /// False computes quantised layers in float between exact rounding.
  void switch_integer(bool on) { session_.integer = on; }

  Context& context() noexcept { return context_; }
  const Context& context() const noexcept { return context_; }
  const SessionOptions& session_options() const noexcept { return session_; }

 private:
  std::string model_;
  Context context_;
  SessionOptions session_;
};

/// An input or output of a predictor, which must outlive it.
class TensorHandle {
 public:
  explicit TensorHandle(Tensor& tensor, Value value) : tensor_(&tensor), value_(std::move(value)) {}

  const std::string& name() const noexcept { return value_.name; }
  /// The shape of what is copied in next.
  void reshape(Shape shape);
  /// Its elements in order. Without a `reshape` they must have as many as the shape before.
  template <typename T>
  void copy_from_cpu(std::span<const T> data) {
    *tensor_ = Tensor::of<T>(shape_for(static_cast<std::int64_t>(data.size())), data);
  }
  template <typename T>
  void copy_from_cpu(const std::vector<T>& data) {
    copy_from_cpu(std::span<const T>(data));
  }
  void copy_from_cpu(const Tensor& tensor) { *tensor_ = tensor; }
  /// The elements of the last run's result, or of what was copied in.
  template <typename T>
  std::vector<T> copy_to_cpu() const {
    const auto data = tensor().data<T>();
    return {data.begin(), data.end()};
  }
  /// The shape of what it holds, else the wanted one, else the model's, where -1 is open.
  Shape shape() const;
  DType type() const noexcept { return value_.type.dtype; }
  /// What it holds; throws Error(Usage) before there is anything.
  const Tensor& tensor() const;

 private:
  Shape shape_for(std::int64_t size) const;

  Tensor* tensor_;
  Value value_;
  std::optional<Shape> wanted_;
};

/// Runs a model.
class Predictor {
 public:
  explicit Predictor(const Config& config);

  std::vector<std::string> get_input_names() const;
  std::vector<std::string> get_output_names() const;
  /// Throws Error(Usage) with the nearest name.
  std::unique_ptr<TensorHandle> get_input_handle(const std::string& name);
  std::unique_ptr<TensorHandle> get_output_handle(const std::string& name);
  /// From what was copied into the inputs.
  void run();

 private:
  Session session_;
  TensorMap inputs_;
  TensorMap outputs_;
};

/// A predictor of `config`.
std::shared_ptr<Predictor> create_predictor(const Config& config);

}  // namespace quench
