// SPDX-License-Identifier: Apache-2.0
// Follows the batch through a graph, from the first dimension of its inputs to that of its outputs.
#include "exec/engine/samplewise.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/facts.h"

namespace quench::exec {
namespace {

/// What a value holds: the same for every batch, one row for each sample, or sizes that the batch
/// is one of.
enum class Holds { Constant, Samples, Sizes, Unknown };

bool starts_with(const ValueType& type, const std::string& batch) {
  return type.shape && !type.shape->empty() && type.shape->front().symbol == batch;
}

class Follower {
 public:
  explicit Follower(const Graph& graph) : graph_(graph), holds_(graph.values().size()) {}

  bool reaches_outputs() {
    if (!start()) return false;
    for (const Node& node : graph_.nodes) {
      const Holds held = result_of(node);
      if (held == Holds::Unknown) return false;
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        if (held == Holds::Samples && !starts_with_batch(id)) return false;
        holds_[static_cast<std::size_t>(id)] = held;
      }
    }
    return std::ranges::all_of(graph_.outputs, [&](ValueId id) { return samples(id); });
  }
  const std::string& batch() const noexcept { return batch_; }

 private:
  /// Every input has the same open first dimension, which is no other dimension of any.
  bool start() {
    for (std::size_t i = 0; i < holds_.size(); ++i) {
      if (graph_.values()[i].captured) return false;
    }
    for (const ValueId id : graph_.inputs) {
      if (graph_[id].constant) continue;
      const auto& shape = graph_[id].type.shape;
      if (!shape || shape->empty() || shape->front().symbol.empty()) return false;
      if (batch_.empty()) batch_ = shape->front().symbol;
      if (std::ranges::count(*shape, batch_, &Dim::symbol) != 1 || !starts_with_batch(id)) {
        return false;
      }
      holds_[static_cast<std::size_t>(id)] = Holds::Samples;
    }
    return !batch_.empty();
  }

  Holds of(ValueId id) const {
    return id == kNoValue ? Holds::Constant : holds_[static_cast<std::size_t>(id)];
  }
  bool samples(ValueId id) const { return of(id) == Holds::Samples; }
  bool all(const Node& node, Holds wanted, std::size_t from = 0) const {
    return std::all_of(node.inputs.begin() + static_cast<std::ptrdiff_t>(from), node.inputs.end(),
                       [&](ValueId id) { return of(id) == wanted; });
  }
  bool starts_with_batch(ValueId id) const { return starts_with(graph_[id].type, batch_); }
  std::size_t rank(ValueId id) const {
    const auto& shape = graph_[id].type.shape;
    return shape ? shape->size() : 0;
  }
  /// The value is the same for each row of a result with `rows` dimensions.
  bool same_for_rows(ValueId id, std::size_t rows) const {
    if (id == kNoValue) return true;
    const auto& shape = graph_[id].type.shape;
    if (of(id) != Holds::Constant || !shape) return false;
    return shape->size() < rows || (shape->size() == rows && shape->front().value == 1);
  }

  Holds result_of(const Node& node) const {
    if (!node.domain.empty() && node.domain != "ai.onnx") return Holds::Unknown;
    if (!subgraphs(node).empty() || node.inputs.empty()) return Holds::Unknown;
    if (all(node, Holds::Constant)) return Holds::Constant;
    if (node.op_type == "Shape") return Holds::Sizes;
    const bool any_samples =
        std::ranges::any_of(node.inputs, [&](ValueId id) { return samples(id); });
    if (!any_samples) return ops::is(node, ops::kSizes) ? Holds::Sizes : Holds::Unknown;
    return keeps_rows(node) ? Holds::Samples : Holds::Unknown;
  }

  bool keeps_rows(const Node& node) const {
    if (ops::is(node, ops::kPointwise)) return keeps_rows_pointwise(node);
    const ops::Batch batch = ops::facts(node).batch;
    if (batch == ops::Batch::Product) return keeps_rows_of_product(node);
    if (batch == ops::Batch::Join) return along_inner_axis(node) && all(node, Holds::Samples);
    if (batch == ops::Batch::Lookup && of(node.inputs[0]) == Holds::Constant) {
      return axis_of(node) == 0;  // a table, and rows of indices
    }
    // From here on samples come first, and the other inputs say what to do with them.
    if (!samples(node.inputs[0])) return false;
    if (batch == ops::Batch::SameRows) {
      return node.inputs.size() == 1 || !samples(node.inputs.back());
    }
    return all(node, Holds::Constant, 1) && keeps_rows_of_first(node, batch);
  }

  bool keeps_rows_of_first(const Node& node, ops::Batch batch) const {
    switch (batch) {
      case ops::Batch::Rows:
        // Other outputs look beyond a sample: positions in the whole batch, means over it.
        return node.outputs.size() == 1 && node.get_int("training_mode", 0) == 0;
      case ops::Batch::InnerAxis:
      case ops::Batch::Lookup:
        return along_inner_axis(node);
      case ops::Batch::Scaled:
        return one_scale_for_rows(node);
      case ops::Batch::Flatten:
        return node.get_int("axis", 1) == 1;
      case ops::Batch::Permute:
        return keeps_first(node.get_ints("perm"));
      case ops::Batch::FirstOperand:
        return keeps_rows_of_gemm(node);
      case ops::Batch::Reduce:
        return reduces_inner_axes(node);
      default:
        return false;
    }
  }

  bool keeps_rows_pointwise(const Node& node) const {
    const std::size_t rows = rank(node.outputs[0]);
    return std::ranges::all_of(node.inputs, [&](ValueId id) {
      return samples(id) ? rank(id) == rows : same_for_rows(id, rows);
    });
  }

  bool keeps_rows_of_product(const Node& node) const {
    const std::size_t left = rank(node.inputs[0]);
    const std::size_t right = rank(node.inputs[1]);
    if (samples(node.inputs[0]) && samples(node.inputs[1])) return left == right && left >= 3;
    if (samples(node.inputs[0])) {
      return left >= 2 && right >= 2 && (right == 2 || same_for_rows(node.inputs[1], left));
    }
    return right >= 3 && left == 2 && of(node.inputs[0]) == Holds::Constant;
  }

  bool keeps_rows_of_gemm(const Node& node) const {
    return node.get_int("transA", 0) == 0 && same_for_rows(node.input(2), 2);
  }

  static bool keeps_first(const std::vector<std::int64_t>& order) {
    return !order.empty() && order.front() == 0;
  }

  static std::int64_t axis_of(const Node& node) {
    return node.get_int("axis", ops::facts(node).axis);
  }

  bool along_inner_axis(const Node& node) const {
    const std::int64_t axis = axis_of(node);
    const auto dims = static_cast<std::int64_t>(rank(node.inputs[0]));
    return axis != 0 && axis > -dims;
  }

  bool one_scale_for_rows(const Node& node) const {
    const auto& scale = graph_[node.inputs[1]].type.shape;
    return scale && (scale->empty() || (scale->size() == 1 && along_channels(node)));
  }
  bool along_channels(const Node& node) const {
    const auto axis = node.get_int("axis", 1);
    return axis > 0 || (axis < 0 && axis > -static_cast<std::int64_t>(rank(node.inputs[0])));
  }

  bool reduces_inner_axes(const Node& node) const {
    std::vector<std::int64_t> axes = node.get_ints("axes");
    if (const Tensor* given = graph_.constant(node.input(1)); given != nullptr) {
      if (given->dtype() != DType::Int64) return false;
      const auto values = given->data<std::int64_t>();
      axes.assign(values.begin(), values.end());
    }
    const auto dims = static_cast<std::int64_t>(rank(node.inputs[0]));
    return !axes.empty() &&
           std::ranges::all_of(axes, [&](std::int64_t axis) { return axis != 0 && axis > -dims; });
  }

  const Graph& graph_;
  std::vector<Holds> holds_;
  std::string batch_;
};

/// Of one row of a value; nothing when a dimension is open.
std::optional<double> row_bytes(const ValueType& type) {
  double bytes = info(type.dtype).bits / 8.0;
  for (std::size_t i = 1; i < type.shape->size(); ++i) {
    if (!(*type.shape)[i].known()) return std::nullopt;
    bytes *= static_cast<double>((*type.shape)[i].value);
  }
  return bytes;
}

std::optional<double> row_bytes(const Graph& graph, const Node& node, const std::string& batch) {
  double bytes = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *values) {
      if (id == kNoValue || !starts_with(graph[id].type, batch)) continue;
      const std::optional<double> row = row_bytes(graph[id].type);
      if (!row) return std::nullopt;
      bytes += *row;
    }
  }
  return bytes;
}

}  // namespace

std::string batch_of_samples(const Graph& graph) {
  Follower follower(graph);
  return follower.reaches_outputs() ? follower.batch() : std::string();
}

std::optional<SampleBytes> bytes_of_sample(const Graph& graph, const std::string& batch) {
  SampleBytes result;
  for (const Node& node : graph.nodes) {
    const std::optional<double> bytes = row_bytes(graph, node, batch);
    if (!bytes) return std::nullopt;
    result.largest = std::max(result.largest, *bytes);
    result.all += *bytes;
  }
  for (const Value& value : graph.values()) {
    if (value.constant) result.constants += static_cast<double>(value.constant->num_bytes());
  }
  return result;
}

}  // namespace quench::exec
