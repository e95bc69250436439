// SPDX-License-Identifier: Apache-2.0
// What each node could be, seen alone.
#include <algorithm>

#include "base/format.h"
#include "plan/config.h"
#include "plan/logarithm.h"
#include "plan/planner.h"

namespace quench::plan {
namespace {

/// Why a node whose numbers are all constant stays as it is: indices and shapes may be computed.
std::string refuse_constant(const Job& job, const Node& node) {
  const bool whole = std::ranges::all_of(
      node.inputs, [&](ValueId id) { return id == kNoValue || job.graph.constant(id) != nullptr; });
  return whole ? "all it reads is constant" : "what it picks from is a constant, kept in float";
}

/// Inputs that must be float32 numbers which no Q/DQ of the model's own touches.
std::string refuse_inputs(const Job& job, const Node& node) {
  const auto inputs = data_inputs(node);
  if (inputs.empty()) return "it reads nothing";
  bool computed = false;
  for (const std::size_t i : inputs) {
    const ValueId id = node.inputs[i];
    if (!maybe_float(job.graph, id)) {
      return format("it works on {}, not on float32", name_of(job.graph[id].type.dtype));
    }
    if (job.graph.constant(id) != nullptr) continue;
    computed = true;
    const NodeId maker = job.producer(id);
    if (maker >= 0 && job.node(maker).op_type == "DequantizeLinear") {
      return "it is quantised already";
    }
  }
  return computed ? "" : refuse_constant(job, node);
}

/// A bias must be a constant with one number a channel, or one for all.
std::string refuse_bias(const Job& job, const Node& node, const Tensor& weight) {
  const int input = ops::facts(node).bias;
  const ValueId id = input < 0 ? kNoValue : node.input(static_cast<std::size_t>(input));
  if (id == kNoValue) return "";
  const Tensor* bias = job.graph.constant(id);
  if (bias == nullptr) return "its bias is computed";
  if (bias->dtype() != DType::Float32) return "its bias is not float32";
  const auto layout = ops::weight_layout(node, 1, weight.shape());
  const std::int64_t channels = layout ? layout->channels : -1;
  const bool row = bias->rank() <= 1 || (bias->rank() == 2 && bias->shape()[0] == 1);
  if (row && (bias->size() == channels || bias->size() == 1)) return "";
  return "its bias is not one number a channel";
}

std::string refuse_layer(const Job& job, const Node& node) {
  const Tensor* weight = job.graph.constant(node.input(1));
  if (weight == nullptr) {
    const bool either = ops::facts(node).weights == (ops::kInput0 | ops::kInput1);
    return either ? "" : "its weight is computed";
  }
  if (weight->size() == 0) return "its weight is empty";
  return refuse_bias(job, node, *weight);
}

std::string refuse_by_target(const Job& job, const Node& node) {
  return job.target.refuse == nullptr ? "" : job.target.refuse(job.graph, node);
}

/// Whether a rule is for this node, not for many.
bool is_named(const Job& job, const Node& node) {
  const std::string key = key_of(job.graph, node);
  return job.config.by_layer.contains(key) ||
         std::ranges::any_of(job.config.by_name,
                             [&](const auto& each) { return matches_glob(each.first, key); });
}

std::string refuse_mover(const Job& job, const Node& node) {
  if (node.op_type == "MaxPool" && node.outputs.size() > 1) return "its indices are asked for";
  const std::string mode = node.get_string("mode", "nearest");
  const bool blends = mode == "linear" && job.target.interpolates;
  if (node.op_type == "Resize" && mode != "nearest" && !blends) {
    return "interpolation needs float";
  }
  if (node.op_type == "Resize" &&
      node.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return "it may bring in a number from outside";
  }
  if (job.graph.constant(node.input(0)) != nullptr) return refuse_constant(job, node);
  return refuse_by_target(job, node);
}

std::string refuse(const Job& job, const Node& node, NodePlan::Kind kind, bool for_logarithm) {
  if (std::string reason = skip_reason(job.graph, node, job.config); !reason.empty()) {
    const bool mover = kind == NodePlan::Kind::PassThrough;
    // Movers are not listed among the types to quantise, and follow their neighbours.
    if (!mover || job.config.quantizable_op_type.empty()) return reason;
  }
  const QuantRule rule = job.config.rule_for(key_of(job.graph, node), node.op_type);
  if (rule.type == QuantType::Weight) return "a rule stores its weight alone as integers";
  if (rule.type == QuantType::Dynamic) return "a rule quantises it while the model runs";
  if (std::string reason = refuse_inputs(job, node); !reason.empty()) return reason;
  if (kind == NodePlan::Kind::PassThrough) return refuse_mover(job, node);
  if (is_layer(node)) {
    if (std::string reason = refuse_layer(job, node); !reason.empty()) return reason;
  }
  if (std::string reason = refuse_by_target(job, node); !reason.empty()) return reason;
  if (is_named(job, node)) return "";
  if (for_logarithm) return "a logarithm reads its result: small numbers matter as much as large";
  return job.target.prefer_float != nullptr ? job.target.prefer_float(job.graph, node) : "";
}

NodePlan classify(const Job& job, const Node& node, bool for_logarithm) {
  const auto in_float = [](std::string reason) { return NodePlan{.reason = std::move(reason)}; };
  if (!node.domain.empty()) return in_float(format("an operator of domain '{}'", node.domain));
  if (!subgraphs(node).empty()) return in_float("control flow: its bodies stay in float");
  if (output_name(job.graph, node).empty()) return in_float("it makes nothing");
  const TargetOp* op = find_op(job.target, node.op_type);
  if (op == nullptr) return in_float(std::string(job.target.otherwise));
  if (op->kind == NodePlan::Kind::Float) {
    // What the user says comes first: it also keeps an activation out of the layer before it.
    std::string named = named_reason(job.graph, node, job.config);
    return in_float(named.empty() ? std::string(op->reason) : std::move(named));
  }
  if (std::string reason = refuse(job, node, op->kind, for_logarithm); !reason.empty()) {
    return in_float(std::move(reason));
  }
  NodePlan result{.kind = op->kind};
  // Also where there is none yet: correcting errors may give it one.
  result.quantize_bias = job.target.quantize_bias && is_layer(node) && ops::facts(node).bias >= 0 &&
                         !leaves_weight(job.rule(node));
  return result;
}

}  // namespace

std::vector<NodePlan> classify(const Job& job) {
  std::vector<NodePlan> plans;
  plans.reserve(job.graph.nodes.size());
  const std::vector<bool> read = read_by_logarithms(job.graph);
  for (const Node& node : job.graph.nodes) {
    const bool for_logarithm = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kNoValue && read[static_cast<std::size_t>(id)];
    });
    plans.push_back(classify(job, node, for_logarithm));
  }
  return plans;
}

}  // namespace quench::plan
