// SPDX-License-Identifier: Apache-2.0
// Builds graphs of known architectures with random weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::generate {

using Ints = std::vector<std::int64_t>;

/// What the architectures can be told.
struct Options {
  std::uint64_t seed = 1;
  std::int64_t opset = 17;
  bool keep_norm = false;      ///< resnet50: batch normalisation as nodes of its own
  std::int64_t layers = 12;    ///< bert-base
  std::int64_t size_mb = 500;  ///< big, transformer
  std::int64_t hidden = 1024;  ///< transformer: its width, a multiple of 64
};

Model resnet50(const Options& options);
Model bert_base(const Options& options);
Model transformer(const Options& options);
Model big(const Options& options);

/// Adds nodes with one output each, and weights drawn from one sequence of random numbers.
class Builder {
 public:
  explicit Builder(const Options& options, const std::string& name);

  /// A graph input; -1 in `shape` takes the next of `symbols`.
  ValueId input(const std::string& name, DType dtype, const Ints& shape,
                const std::vector<std::string>& symbols);
  void output(ValueId value, const std::string& name, const Ints& shape,
              const std::vector<std::string>& symbols);
  Model take() { return std::move(model_); }
  std::int64_t opset() const { return model_.opset(); }

  /// Weights spread evenly over -limit..limit.
  ValueId weight(const Shape& shape, double limit);
  /// Weights spread evenly over low..high.
  ValueId spread(const Shape& shape, double low, double high);
  ValueId ints(const Ints& values);
  ValueId number(float value);

  Node& node(const std::string& op_type, std::vector<ValueId> inputs);
  /// A node without attributes; gives its output.
  ValueId apply(const std::string& op_type, std::vector<ValueId> inputs);

 private:
  Model model_;
  std::uint64_t state_;
};

}  // namespace quench::generate
