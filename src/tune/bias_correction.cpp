// SPDX-License-Identifier: Apache-2.0
// Full bias correction. The means of the float model's layers are known. In the quantised model
// every layer is followed by nodes that shift its output by the mean difference of all samples so
// far: each layer then sees corrected inputs, and the last shifts are the corrections.
//
// A mean that a few odd samples make (one clipped outlier is enough) must not move all others. So a
// shift is shrunk by 1 - (kDoubt e / m)^2, where e is the standard error of the mean difference m,
// and is nothing where they differ too little. Measured on MobileNetV2, SQNR of held-out
// photographs: without it 10 to 17 dB, depending on the samples; with it 17.3 to 17.9 dB.
#include "tune/bias_correction.h"

#include <algorithm>

#include "base/format.h"
#include "quench/lower.h"
#include "tune/bias_layers.h"
#include "tune/float_weights.h"

namespace quench::tune {
namespace {

using Layers = std::vector<BiasLayer>;

std::string value_name(const BiasLayer& layer, const char* what) {
  return layer.output + "/quench_" + what;
}

constexpr double kDoubt = 3;
constexpr const char* kShare = "quench_share";       ///< of this run among the samples so far
constexpr const char* kDoubtInput = "quench_doubt";  ///< kDoubt^2 / samples so far

/// The nodes behind one layer of the quantised model. Sums over the samples before this run are
/// fed, already weighed with their share.
class ShiftNodes {
 public:
  ShiftNodes(Model& model, const BiasLayer& layer)
      : model_(model), graph_(model.graph), layer_(layer) {}

  void insert(bool by_sample) {
    const ValueId out = graph_.find(layer_.output);
    const auto maker = std::ranges::find_if(graph_.nodes, [&](const Node& node) {
      return std::ranges::find(node.outputs, out) != node.outputs.end();
    });
    if (maker == graph_.nodes.end()) {
      fail(ErrorKind::Internal, "the quantised model does not make '{}'", layer_.output);
    }
    const auto place = maker - graph_.nodes.begin();
    if (!graph_[out].type.shape) graph_[out].type.shape = std::vector<Dim>(layer_.rank, Dim{});
    const ValueId shifted = graph_.add_fresh(layer_.output + "/quench_shifted", graph_[out].type);
    replace_uses(graph_, out, shifted);
    add("Add", {out, shift(out, by_sample)}, shifted);
    graph_.nodes.insert(graph_.nodes.begin() + place + 1, nodes_.begin(), nodes_.end());
  }

 private:
  ValueId shift(ValueId out, bool by_sample) {
    ValueId rows = add_sample_means(model_, out, layer_.channel_axis(), nodes_);
    if (!by_sample) rows = mean(rows);
    const ValueId share = graph_.find(kShare);
    const ValueId difference = make("Sub", {input("target"), rows});
    const ValueId square = make("Mul", {difference, difference});
    const ValueId first =
        result("mean", {input("mean_before"), make("Mul", {mean(difference), share})});
    const ValueId second =
        result("square", {input("square_before"), make("Mul", {mean(square), share})});
    const ValueId signal = make("Mul", {first, first});
    const ValueId variance = make("Sub", {second, signal});
    const ValueId doubt = make("Mul", {variance, graph_.find(kDoubtInput)});
    const ValueId never_zero = make("Add", {signal, tiny()});
    const ValueId factor = make("Relu", {make("Div", {make("Sub", {signal, doubt}), never_zero})});
    const ValueId found = graph_.add_fresh(name("shift"));
    add("Mul", {first, factor}, found);
    graph_.outputs.push_back(found);
    return found;
  }

  std::string name(const char* what) const { return value_name(layer_, what); }
  void add(const char* op, std::vector<ValueId> inputs, ValueId out) {
    Node node;
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.outputs = {out};
    nodes_.push_back(std::move(node));
  }
  ValueId make(const char* op, std::vector<ValueId> inputs) {
    const ValueId out = graph_.add_fresh(name(op));
    add(op, std::move(inputs), out);
    return out;
  }
  /// A sum that the caller reads.
  ValueId result(const char* what, std::vector<ValueId> terms) {
    const ValueId out = graph_.add_fresh(name(what));
    add("Add", std::move(terms), out);
    graph_.outputs.push_back(out);
    return out;
  }
  ValueId input(const char* what) {
    const ValueId id = graph_.add_fresh(
        name(what), ValueType::tensor(DType::Float32, std::vector<Dim>(layer_.rank, Dim{})));
    graph_.inputs.push_back(id);
    return id;
  }
  ValueId tiny() { return graph_.add_constant(name("tiny"), Tensor::scalar(1e-30F)); }
  /// Over the first axis, which stays with size 1.
  ValueId mean(ValueId source) {
    const ValueId out = make("ReduceMean", {source});
    Node& node = nodes_.back();
    node.set("keepdims", std::int64_t{1});
    constexpr std::int64_t kAxesAreAnInput = 18;
    if (model_.opset() < kAxesAreAnInput) {
      node.set("axes", std::vector<std::int64_t>{0});
    } else {
      node.inputs.push_back(graph_.add_constant(name("axes"), Tensor::of<std::int64_t>({1}, {0})));
    }
    return out;
  }

  Model& model_;
  Graph& graph_;
  const BiasLayer& layer_;
  std::vector<Node> nodes_;
};

Model shifting_model(Model model, const Layers& layers, const LayerMeans& means) {
  for (const char* scalar : {kShare, kDoubtInput}) {
    model.graph.inputs.push_back(
        model.graph.add_fresh(scalar, ValueType::tensor(DType::Float32, std::vector<Dim>{})));
  }
  for (const BiasLayer& layer : layers) {
    ShiftNodes(model, layer).insert(means.at(layer.output).by_sample);
  }
  return model;
}

/// What is known of a layer's shift after some samples.
struct Found {
  std::vector<float> shift;
  std::vector<float> mean;    ///< of the differences
  std::vector<float> square;  ///< the mean square of the differences
};

/// The shifts on the way, from all samples seen so far.
class Shifts {
 public:
  Shifts(const Layers& layers, const LayerMeans& means)
      : layers_(layers), means_(means), found_(layers.size()) {
    for (const BiasLayer& layer : layers) {
      for (const char* what : {"shift", "mean", "square"})
        names_.push_back(value_name(layer, what));
    }
  }

  void add(const TensorMap& run, Session& shifted) {
    const auto size = static_cast<std::size_t>(samples_in(run));
    const auto samples = static_cast<double>(seen_ + size);
    const double share = static_cast<double>(size) / samples;
    TensorMap feeds = run;
    feeds[kShare] = Tensor::scalar(static_cast<float>(share));
    feeds[kDoubtInput] = Tensor::scalar(static_cast<float>(kDoubt * kDoubt / samples));
    for (std::size_t i = 0; i < layers_.size(); ++i) feed(i, size, 1 - share, feeds);
    const TensorMap got = shifted.run(feeds, names_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      found_[i] = {.shift = to_float(got.at(names_[3 * i])),
                   .mean = to_float(got.at(names_[3 * i + 1])),
                   .square = to_float(got.at(names_[3 * i + 2]))};
    }
    seen_ += size;
  }

  std::vector<double> of(std::size_t layer) const {
    return {found_[layer].shift.begin(), found_[layer].shift.end()};
  }

 private:
  /// The float model's means of this run, and what the samples before it come to.
  void feed(std::size_t i, std::size_t size, double weight, TensorMap& feeds) const {
    const BiasLayer& layer = layers_[i];
    const SampleMeans& means = means_.at(layer.output);
    const std::size_t count = means.by_sample ? size : 1;
    std::vector<float> target;
    for (std::size_t row = seen_; row < seen_ + count; ++row) {
      target.insert(target.end(), means.rows.at(row).begin(), means.rows.at(row).end());
    }
    Shape shape(layer.rank, 1);
    shape[layer.channel_axis()] = static_cast<std::int64_t>(target.size() / count);
    for (const auto& [what, sums] : {std::pair("mean_before", &found_[i].mean),
                                     std::pair("square_before", &found_[i].square)}) {
      std::vector<float> before(target.size() / count, 0.0F);
      for (std::size_t c = 0; c < sums->size(); ++c) {
        before[c] = static_cast<float>(weight * static_cast<double>((*sums)[c]));
      }
      feeds[value_name(layer, what)] = Tensor::of<float>(shape, std::span<const float>(before));
    }
    shape[0] = static_cast<std::int64_t>(count);
    feeds[value_name(layer, "target")] = Tensor::of<float>(shape, std::span<const float>(target));
  }

  const Layers& layers_;
  const LayerMeans& means_;
  std::vector<std::string> names_;
  std::vector<Found> found_;
  std::size_t seen_ = 0;  ///< samples
};

}  // namespace

std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           const CorrectionData& data, const Context& context) {
  const Layers layers = find_bias_layers(model, plan);
  if (layers.empty() || data.runs.empty()) return 0;
  // A bias behind the layer does not show in its output: that one is found from nothing.
  correct_biases_fast(model, plan, solution, data.means, true);
  Model quantised = insert_qdq(model, plan, solution);
  expand_to_float(quantised);
  Session shifted(shifting_model(std::move(quantised), layers, data.means), {.integer = false},
                  context);
  Shifts shifts(layers, data.means);
  for (const TensorMap& run : data.runs) {
    context.check_cancelled();
    shifts.add(run, shifted);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) move_bias(model, layers[i], shifts.of(i));
  return layers.size();
}

}  // namespace quench::tune
