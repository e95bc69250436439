// SPDX-License-Identifier: Apache-2.0
// Finds the layers of a quantised model in its float model.
#include "analyze/quantized_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/format.h"
#include "passes/layer.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "quant/dequantize_linear.h"
#include "tune/channel_notes.h"

namespace quench::analyze {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The input that holds the weight of a layer.
constexpr std::size_t kWeight = 1;
/// Weights are those of another layer below this cosine. Two that have nothing to do with each
/// other have one near 0; four bits of noise leave 0.98, two bits 0.8.
constexpr double kAlike = 0.5;
/// Nodes between a weight's DequantizeLinear and its layer that are looked through.
constexpr int kMostSteps = 4;

const Node* maker(const Graph& graph, const Uses& uses, ValueId id) {
  const NodeId made = id == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(id)];
  return made < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(made)];
}

/// The DequantizeLinear that makes a weight, maybe with its elements moved; null where none does.
const Node* weight_dq(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* node = maker(graph, uses, id);
  for (int step = 0; step < kMostSteps && node != nullptr && !plan::is_dq(node); ++step) {
    if (!ops::is(*node, ops::kMoves)) return nullptr;
    node = maker(graph, uses, node->input(0));
  }
  if (!plan::is_dq(node)) return nullptr;
  if (graph.constant(node->input(0)) != nullptr) return node;
  // Other tools leave the float weight in the file, with a QuantizeLinear behind it.
  const Node* q = maker(graph, uses, node->input(0));
  return plan::is_q(q) && graph.constant(q->input(0)) != nullptr ? node : nullptr;
}

/// The weight in numbers; empty where scales do not fit it.
std::vector<float> dequantized(const Graph& graph, const Uses& uses, const Node& dq) {
  const Tensor* stored = graph.constant(dq.input(0));
  if (stored == nullptr)
    return to_float(*graph.constant(maker(graph, uses, dq.input(0))->input(0)));
  const Tensor* scale = graph.constant(dq.input(1));
  if (scale == nullptr || stored->rank() == 0) return {};
  std::int64_t axis = dq.get_int("axis", 1);
  if (axis < 0) axis += stored->rank();
  const bool one = scale->size() == 1;
  const bool rows = scale->rank() == 1 && axis >= 0 && axis < stored->rank() &&
                    stored->shape()[static_cast<std::size_t>(axis)] == scale->size();
  if (!one && !rows) return {};
  return quant::dequantize_linear(*stored, *scale, graph.constant(dq.input(2)), axis);
}

/// What a value was before a QuantizeLinear and a DequantizeLinear; itself where there are none.
ValueId before_quantization(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* dq = maker(graph, uses, id);
  if (!plan::is_dq(dq)) return id;
  const Node* q = maker(graph, uses, dq->input(0));
  return plan::is_q(q) ? q->input(0) : id;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double both = 0;
  double first = 0;
  double second = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    both += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    first += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    second += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  const double size = std::sqrt(first * second);
  return size > 0 ? both / size : 0;
}

/// A tensor with zeros behind it in every dimension; nothing where it is larger than that.
std::optional<Tensor> padded(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  if (tensor.rank() != std::ssize(shape)) return std::nullopt;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (tensor.shape()[d] > shape[d]) return std::nullopt;
  }
  const auto count = static_cast<std::size_t>(num_elements(shape).value_or(0));
  std::vector<float> numbers(count, 0.0F);
  const std::vector<float> source = to_float(tensor);
  for (std::size_t i = 0; i < source.size(); ++i) {
    std::size_t rest = i;
    std::size_t place = 0;
    std::size_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const auto size = static_cast<std::size_t>(tensor.shape()[d]);
      place += rest % size * stride;
      stride *= static_cast<std::size_t>(shape[d]);
      rest /= size;
    }
    numbers[place] = source[i];
  }
  return Tensor::of<float>(shape, std::span<const float>(numbers));
}

/// A layer of the float model that may be the twin of a quantised one.
struct Candidate {
  const Node* node = nullptr;
  FloatLayer plain;
  bool taken = false;
};

/// The float model's layers, in the channels that the notes of the quantised file tell of.
std::vector<Candidate> candidates(const Model& plain, const ChannelNotes& notes) {
  Graph graph = plain.graph;
  const passes::PassOptions options;
  const passes::Rewriter rewriter(graph, plain, options);
  const auto scales = [&](ValueId id) -> const std::vector<double>* {
    for (const tune::ScaledValues& each : notes.scaled) {
      if (std::ranges::find(each.values, graph[id].name) != each.values.end()) return &each.scales;
    }
    return nullptr;
  };
  const Uses uses(graph);
  std::vector<Candidate> all;
  for (const Node& node : plain.graph.nodes) {
    const std::optional<passes::Layer> layer = passes::layer_of(rewriter, node);
    if (!layer) continue;
    Candidate made{.node = &node, .plain = {.weight = *graph.constant(layer->weight)}};
    if (made.plain.weight.dtype() != DType::Float32) continue;
    const std::vector<double>* in = scales(node.inputs[0]);
    const std::vector<double>* out = scales(node.outputs[0]);
    if (const Node* before = maker(graph, uses, node.inputs[0])) {
      made.plain.bounds = plan::activation_bounds(graph, *before, plain.opset());
      // Channels that were scaled have an upper bound each.
      if (made.plain.bounds && in != nullptr) made.plain.bounds->max = kInfinity;
    }
    std::vector<float> weight = to_float(made.plain.weight);
    std::vector<float> bias;
    if (layer->bias != kNoValue) bias = to_float(*graph.constant(layer->bias));
    const auto factor = [](const std::vector<double>* list, std::size_t channel) {
      return list == nullptr || channel >= list->size() ? 1.0 : (*list)[channel];
    };
    passes::WeightMap(*layer, made.plain.weight).for_each([&](std::size_t i, auto channels) {
      weight[i] = static_cast<float>(static_cast<double>(weight[i]) * factor(in, channels.in) /
                                     factor(out, channels.out));
    });
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = static_cast<float>(static_cast<double>(bias[i]) / factor(out, i));
    }
    made.plain.weight =
        Tensor::of<float>(made.plain.weight.shape(), std::span<const float>(weight));
    if (!bias.empty()) {
      made.plain.bias = Tensor::of<float>({std::ssize(bias)}, std::span<const float>(bias));
    }
    all.push_back(std::move(made));
  }
  return all;
}

bool same_kind(const Node& a, const Node& b) {
  return ops::facts(a).weight == ops::facts(b).weight &&
         a.get_int("transB", 0) == b.get_int("transB", 0);
}

/// Layers of the float model, each of which is the twin of one at most.
class Twins {
 public:
  explicit Twins(std::vector<Candidate> all) : all_(std::move(all)) {}

  /// The first that fits and is like what is wanted; null where none is.
  template <typename Like>
  const FloatLayer* take(const Node& node, const Shape& shape, const Like& like) {
    for (Candidate& one : all_) {
      if (!fits(one, node, shape) || !like(one)) continue;
      one.taken = true;
      return &one.plain;
    }
    return nullptr;
  }

  /// The one whose weight is nearest.
  const FloatLayer* take_nearest(const Node& node, const Shape& shape,
                                 const std::vector<float>& weight) {
    double best = kAlike;
    Candidate* nearest = nullptr;
    for (Candidate& one : all_) {
      if (one.plain.weight.shape() != shape || !fits(one, node, shape)) continue;
      const double alike = cosine(weight, to_float(one.plain.weight));
      if (alike <= best) continue;
      best = alike;
      nearest = &one;
    }
    if (nearest == nullptr) return nullptr;
    nearest->taken = true;
    return &nearest->plain;
  }

 private:
  static bool fits(const Candidate& one, const Node& node, const Shape& shape) {
    return !one.taken && same_kind(node, *one.node) && padded(one.plain.weight, shape).has_value();
  }
  std::vector<Candidate> all_;
};

}  // namespace

QuantizedLayers::QuantizedLayers(Model quantized, const Model& plain)
    : model_(std::move(quantized)) {
  infer_types(model_);
  find_sites();
  if (layers_.empty()) {
    fail(ErrorKind::BadModel,
         "it has no layer whose weights a DequantizeLinear makes; the first model must be a "
         "quantised one with QuantizeLinear and DequantizeLinear nodes, --float names the other");
  }
  find_twins(plain);
  if (layers_.empty()) {
    fail(ErrorKind::BadModel,
         "the float model has none of its {} layers: is it of another network?", strangers_.size());
  }
  name_ends(plain.graph);
}

void QuantizedLayers::name_ends(const Graph& plain) {
  Graph& graph = model_.graph;
  const auto name = [&](const std::vector<ValueId>& own, const std::vector<ValueId>& wanted) {
    if (own.size() != wanted.size()) return;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::string& called = plain[wanted[i]].name;
      if (graph.find(called) == kNoValue) graph.rename(own[i], called);
    }
  };
  name(graph.inputs, plain.inputs);
  name(graph.outputs, plain.outputs);
}

void QuantizedLayers::find_sites() {
  const Graph& graph = model_.graph;
  const Uses uses(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!ops::is_layer(node) || node.outputs.empty() || node.input(kWeight) == kNoValue) continue;
    const Node* dq = weight_dq(graph, uses, node.inputs[kWeight]);
    const auto shape = graph[node.inputs[kWeight]].type.static_shape();
    if (dq == nullptr || !shape) continue;
    const bool direct = dq == maker(graph, uses, node.inputs[kWeight]);
    sites_.push_back(
        {.node = i,
         .bits = info(plan::integer_type(graph, *dq)).bits,
         .shape = *shape,
         .dequantized = direct ? dequantized(graph, uses, *dq) : std::vector<float>()});
    const std::string output = output_name(graph, node);
    layers_.push_back({.name = plan::key_of(graph, node),
                       .op_type = node.op_type,
                       .weight = graph[dq->inputs[0]].name,
                       .output = output,
                       .node = output});
  }
}

void QuantizedLayers::find_twins(const Model& plain) {
  Twins twins(candidates(plain, read_channel_notes(model_)));
  const auto node_of = [&](std::size_t i) -> const Node& {
    return model_.graph.nodes[sites_[i].node];
  };
  std::vector<const FloatLayer*> found(sites_.size(), nullptr);
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    found[i] = twins.take(node_of(i), sites_[i].shape, [&](const Candidate& one) {
      return output_name(plain.graph, *one.node) == layers_[i].output;
    });
  }
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const std::string& name = node_of(i).name;
    if (found[i] != nullptr || name.empty()) continue;
    found[i] = twins.take(node_of(i), sites_[i].shape,
                          [&](const Candidate& one) { return one.node->name == name; });
  }
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (found[i] != nullptr || sites_[i].dequantized.empty()) continue;
    found[i] = twins.take_nearest(node_of(i), sites_[i].shape, sites_[i].dequantized);
  }
  std::vector<Layer> layers;
  std::vector<Site> sites;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (found[i] == nullptr) {
      strangers_.push_back(layers_[i].name);
      continue;
    }
    sites_[i].plain = *found[i];
    sites_[i].plain.weight = *padded(found[i]->weight, sites_[i].shape);
    layers.push_back(std::move(layers_[i]));
    sites.push_back(std::move(sites_[i]));
  }
  layers_ = std::move(layers);
  sites_ = std::move(sites);
}

namespace {

/// Puts a Max and a Min before the node at `place`, whose first input they clamp.
void clamp_input(Graph& graph, std::size_t place, const Range& bounds) {
  const auto add = [&](const char* type, double bound) {
    if (!std::isfinite(bound)) return;
    Node node;
    node.op_type = type;
    node.name = graph.nodes[place].name + ":" + type;
    node.inputs = {graph.nodes[place].inputs[0],
                   graph.add_constant("bound", Tensor::of<float>({}, {static_cast<float>(bound)}))};
    node.outputs = {graph.add_fresh("bounded", graph[node.inputs[0]].type)};
    graph.nodes[place].inputs[0] = node.outputs[0];
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(place), std::move(node));
    ++place;
  };
  add("Max", bounds.min);
  add("Min", bounds.max);
}

}  // namespace

void QuantizedLayers::keep_types(const std::vector<std::string>& op_types) {
  std::vector<Layer> layers;
  std::vector<Site> sites;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (std::ranges::find(op_types, layers_[i].op_type) == op_types.end()) continue;
    layers.push_back(std::move(layers_[i]));
    sites.push_back(std::move(sites_[i]));
  }
  if (layers.empty()) {
    fail(ErrorKind::BadConfig, "no quantised layer is one of {}", fmt::join(op_types, ", "));
  }
  layers_ = std::move(layers);
  sites_ = std::move(sites);
}

Model QuantizedLayers::without(std::size_t layer) const {
  const Site& site = sites_[layer];
  Model model = model_;
  Graph& graph = model.graph;
  const Uses uses(graph);
  std::vector<ValueId> inputs = graph.nodes[site.node].inputs;
  const int bias = ops::facts(graph.nodes[site.node]).bias;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i == kWeight) {
      inputs[i] = graph.add_constant("float:" + layers_[layer].weight, site.plain.weight);
    } else if (static_cast<int>(i) != bias) {
      inputs[i] = before_quantization(graph, uses, inputs[i]);
    } else if (inputs[i] != kNoValue && site.plain.bias) {
      const auto shape = graph[inputs[i]].type.static_shape();
      const auto own = shape ? padded(*site.plain.bias, *shape) : std::nullopt;
      if (own) inputs[i] = graph.add_constant("float:" + layers_[layer].name + "/bias", *own);
    }
  }
  const bool was_quantized = inputs[0] != graph.nodes[site.node].inputs[0];
  graph.nodes[site.node].inputs = std::move(inputs);
  if (was_quantized && site.plain.bounds) clamp_input(graph, site.node, *site.plain.bounds);
  return model;
}

}  // namespace quench::analyze
