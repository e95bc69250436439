// SPDX-License-Identifier: Apache-2.0
// GPTQ: rounds a layer's weights one input after the other, and lets the weights of the inputs to
// come make up for the error, so that the layer's output changes least on the data it sees.
#pragma once

#include <optional>

#include "plan/weight_sites.h"
#include "quant/weight.h"
#include "quench/session.h"
#include "tune/dense.h"

namespace quench::tune {

/// GPTQ decides at so many bits and fewer; above, rounding to the nearest is as good.
inline constexpr int kGptqBits = 4;

/// A layer as a matrix product: `groups` times `rows` outputs, each a sum over `columns` inputs.
struct LayerMatrix {
  std::int64_t groups = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool transposed = false;  ///< the weight lies as columns x rows
  /// Where weight (group, row, column) lies.
  std::int64_t at(std::int64_t group, std::int64_t row, std::int64_t column) const {
    return transposed ? column * rows + row : (group * rows + row) * columns + column;
  }
};

/// How a node multiplies its weight, or a reason why GPTQ leaves it alone: groups is 0 then.
struct GptqLayer {
  plan::WeightSite site;
  std::string input;  ///< the activation that the weight is multiplied with
  LayerMatrix matrix;
  std::string reason;
};
GptqLayer gptq_layer(const Graph& graph, const plan::WeightSite& site);

/// What the inputs of a layer look like: sums of their products, one matrix for each group.
class InputMoments {
 public:
  explicit InputMoments(GptqLayer layer);
  /// Adds a batch of the layer's input; of many positions, an even share is taken.
  void add(const Graph& graph, const Tensor& input, int threads);
  const GptqLayer& layer() const noexcept { return layer_; }
  const std::vector<Square>& sums() const noexcept { return sums_; }
  std::int64_t samples() const noexcept { return samples_; }

 private:
  void add_windows(const Graph& graph, const Tensor& input, int threads);

  GptqLayer layer_;
  std::vector<Square> sums_;
  std::int64_t samples_ = 0;
};

/// Better integers on the scales of `base`. Nothing when the layer's output error, measured with
/// the inputs' moments, does not fall.
std::optional<quant::QuantWeight> gptq(const Tensor& weight, const quant::QuantWeight& base,
                                       const InputMoments& inputs, int threads);

}  // namespace quench::tune
