// SPDX-License-Identifier: Apache-2.0
// A model that is trained with quantisation in the loop. Needs libtorch's headers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quench/context.h"
#include "quench/lower.h"
#include "quench/quanter.h"

namespace quench {

using NamedTensors = std::map<std::string, at::Tensor>;

/// What the engine makes of a model that is to be trained. Made by `open_trainable`.
class Trainable {
 public:
  virtual ~Trainable() = default;
  virtual NamedTensors forward(const NamedTensors& inputs) = 0;
  virtual std::vector<Trained> parameters() const = 0;
  virtual void train(bool on) = 0;
  virtual void quantize(bool on) = 0;
  virtual Model float_model() const = 0;
  virtual QuantSolution solution() const = 0;
};

/// Makes the quanter of a tensor: by the type of the operator that makes or reads it, and its name.
using QuanterMaker = std::function<std::unique_ptr<Quanter>(
    const std::string& op_type, const std::string& name, const QuanterSetup& setup)>;
/// One of ours by name, as `quench list quanters` shows them, or as PaddleSlim calls them.
using BuiltInQuanter = std::unique_ptr<Quanter> (*)(const std::string& name,
                                                    const QuanterSetup& setup);
/// The engine's side of the classes below. The caller owns what it gets.
Trainable* open_trainable(const Model& prepared, const QuantPlan& plan, const QuanterMaker& make,
                          const Context& context);
BuiltInQuanter built_in_quanters(const Context& context);

/// A model with leaves to train: `forward`, then `backward` of a loss, then any libtorch optimiser.
class TrainableModel {
 public:
  TrainableModel(Model prepared, QuantPlan plan, std::unique_ptr<Trainable> trainable)
      : model_(std::move(prepared)), plan_(std::move(plan)), trainable_(std::move(trainable)) {}

  /// Outputs by name from inputs by name.
  NamedTensors forward(const NamedTensors& inputs) { return trainable_->forward(inputs); }
  /// Of a model with one input: its first output.
  at::Tensor forward(const at::Tensor& x) {
    const Graph& graph = model_.graph;
    NamedTensors inputs;
    for (const ValueId id : graph.inputs) {
      if (graph.constant(id) == nullptr) inputs[graph[id].name] = x;
    }
    return trainable_->forward(inputs).at(graph[graph.outputs[0]].name);
  }
  /// Weights, then what quanters learn.
  std::vector<Trained> named_parameters() const { return trainable_->parameters(); }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> tensors;
    for (const Trained& each : trainable_->parameters()) tensors.push_back(each.tensor);
    return tensors;
  }
  void train(bool on = true) { trainable_->train(on); }
  void eval() { train(false); }
  /// Off: computes in float.
  void quantize(bool on) { trainable_->quantize(on); }

  /// The float model with the weights as they stand, under the names that they had.
  Model float_model() const { return trainable_->float_model(); }
  /// The quantised model as it stands, for the target of the configuration.
  Model convert() const {
    return insert_qdq(trainable_->float_model(), plan_, trainable_->solution());
  }

 private:
  Model model_;
  QuantPlan plan_;
  std::unique_ptr<Trainable> trainable_;
};

}  // namespace quench
