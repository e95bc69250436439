// SPDX-License-Identifier: Apache-2.0
// Matrix products whose activations are quantised while the model runs.
#pragma once

#include "lower/weight_only.h"

namespace quench::lower {

/// What shares a scale among the activations of a product.
enum class ActivationScales { Layer, Row };

/// Why a product stays in float, or "".
std::string refuse_dynamic(const Graph& graph, const plan::WeightSite& site);
/// The weight as inputs x outputs, whatever the node makes of it.
Tensor product_matrix(const Graph& graph, const plan::WeightSite& site);

/// Rewrites products to DynamicQuantizeLinear, MatMulInteger, Cast and Mul, in the form that ONNX
/// Runtime fuses; a scale for each row is spelt out, because no operator makes one.
class DynamicWriter : public WeightWriter {
 public:
  /// `products` are all the sites that `multiply` will be called for: readers of one activation
  /// share its integers.
  DynamicWriter(Model& model, ActivationScales scales,
                const std::vector<plan::WeightSite>& products);

  /// The activation, whose scales are of rows, is multiplied with a factor for each input before it
  /// is quantised; the weights that read it are divided by them already.
  void scale_inputs(ValueId activation, std::vector<float> factors) {
    factors_[activation] = std::move(factors);
  }
  /// `weight` holds int8 without zero points, laid out as `product_matrix`.
  void multiply(const std::vector<plan::WeightSite>& sites, const quant::QuantWeight& weight);

 private:
  struct Integers {
    ValueId integers = kNoValue;
    ValueId scale = kNoValue;
    ValueId zero_point = kNoValue;
  };
  const Integers& quantized(ValueId activation);
  Integers by_layer(ValueId activation, std::vector<Node>& nodes);
  Integers by_row(ValueId activation, std::vector<Node>& nodes);
  void rewrite(const plan::WeightSite& site, ValueId integers, const std::string& weight,
               const Tensor& scale);

  ActivationScales scales_;
  std::map<ValueId, NodeId> first_reader_;
  std::map<ValueId, Integers> quantized_;
  std::map<ValueId, std::vector<float>> factors_;
};

}  // namespace quench::lower
