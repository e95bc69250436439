// SPDX-License-Identifier: Apache-2.0
// A model: a graph with its operator versions, functions and metadata; how to check and show it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quench/graph.h"

namespace quench {

/// A function that a model defines in terms of other operators.
struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> attributes;  ///< without a default
  std::vector<Attribute> attribute_defaults;
  std::map<std::string, std::int64_t> opsets;  ///< by domain
  Graph body;
  std::string foreign;
};

/// What a model file holds.
struct Model {
  Graph graph;
  std::int64_t ir_version = 8;
  std::map<std::string, std::int64_t> opsets;  ///< by domain; "" is ONNX's own
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  std::string doc;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
  std::string foreign;

  /// The version of a domain's operators, or 0 when the model does not import it.
  std::int64_t opset(std::string_view op_domain = "") const;
};

/// Checks names, order and references, here and in every graph inside; throws Error(BadModel)
/// that names the node.
void verify(const Model& model);

/// The graph as text, one line a value or node: stable, for dumps and golden tests.
std::string dump(const Model& model);

/// Fills in the type and shape of every value that can be known without running the model.
/// A shape that the file declares otherwise is replaced, and told of: a sentence for each. Another
/// element type than the declared one is an Error(BadModel) that names the node.
std::vector<std::string> infer_types(Model& model);

/// How `save` stores constants.
struct SaveOptions {
  enum class Data { AsRead, Inside, External };
  Data data = Data::AsRead;
  /// Packed files: each tensor in its smallest coding; false stores its bits plainly.
  bool encode = true;
  /// Quantised Paddle programs: the fake_quantize operators of older deployers (onnx_format=False)
  /// in place of quantize_linear and dequantize_linear.
  bool fake_quantize = false;
};

/// Reads a model file; its weights stay mapped, not copied.
Model load(const std::string& path);
/// Writes a model: to a temporary file, read again, then renamed. A failure leaves `path` as it
/// was.
void save(const Model& model, const std::string& path, const SaveOptions& options = {});

}  // namespace quench
