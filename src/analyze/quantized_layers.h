// SPDX-License-Identifier: Apache-2.0
// The layers of a model that is quantised already, whoever did it, beside those of its float model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/simulator.h"

namespace quench::analyze {

/// What a layer had before it was quantised.
struct FloatLayer {
  Tensor weight;
  std::optional<Tensor> bias;
  /// What the node before it clamps to: quantised models may leave that to the range of the scale.
  std::optional<Range> bounds;
};

/// Layers whose weights a DequantizeLinear makes. A layer is found in the float model by the name
/// of its result, by its own name, or else by its weights: the nearest of the same shape.
class QuantizedLayers {
 public:
  /// `plain` is prepared as for quantisation. Error(BadModel) where `quantized` has no such layer,
  /// or `plain` has none of them.
  QuantizedLayers(Model quantized, const Model& plain);

  /// The quantised model, with the names of the float model's inputs and outputs.
  const Model& model() const noexcept { return model_; }
  /// Leaves layers of other types out of `layers`. Error(BadConfig) where none is left.
  void keep_types(const std::vector<std::string>& op_types);
  /// In the order in which they run.
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  /// Bits that a weight is stored in.
  int bits(std::size_t layer) const { return sites_[layer].bits; }
  const Tensor& float_weight(std::size_t layer) const { return sites_[layer].plain.weight; }
  /// Quantised layers that the float model does not have: they are not among `layers`.
  const std::vector<std::string>& strangers() const noexcept { return strangers_; }
  /// The model with one layer in float: what it reads as it was before it was quantised, and the
  /// float model's weight and bias.
  Model without(std::size_t layer) const;

 private:
  struct Site {
    std::size_t node = 0;
    int bits = 0;
    Shape shape;                     ///< of the weight
    std::vector<float> dequantized;  ///< the weight; empty where more than one node makes it
    FloatLayer plain;
  };
  void name_ends(const Graph& plain);
  void find_sites();
  void find_twins(const Model& plain);

  Model model_;
  std::vector<Layer> layers_;
  std::vector<Site> sites_;
  std::vector<std::string> strangers_;
};

}  // namespace quench::analyze
