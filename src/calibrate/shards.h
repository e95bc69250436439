// SPDX-License-Identifier: Apache-2.0
// What the processes of a split model must have in common: scales of what none of them has whole.
#pragma once

#include "passes/parallel_layers.h"
#include "quench/quant_config.h"
#include "quench/ranks.h"

namespace quench::calibrate {

/// Weights of a plan whose scales depend on more than this process's part of them.
class SplitWeights {
 public:
  SplitWeights(const Model& model, const QuantPlan& plan);

  /// Whether scales of weight `i` of the plan are for parts that others have.
  bool shared(std::size_t i) const { return kinds_[i] != Kind::Own; }
  /// The weight as the processes have it together. Every one of them asks for the same, in one
  /// order.
  Tensor whole(Ranks& shards, std::size_t i) const;

 private:
  enum class Kind {
    Own,        ///< all that its scales depend on is here
    AlongAxis,  ///< a part of the weight of a layer
    Elements,   ///< of a constant beside a split value, whose elements are all that matters
  };
  const Tensor& part(std::size_t i) const;
  int axis(std::size_t i) const;

  const Model& model_;
  const QuantPlan& plan_;
  passes::ParallelLayers parallel_;
  std::vector<Kind> kinds_;
};

/// Scales that all processes have: of activations those of the first, and of weights that are
/// shared the greatest, because kernels' limits may have made those of one coarser.
void share_scales(const Model& model, const QuantPlan& plan, Ranks& shards,
                  QuantSolution& solution);

}  // namespace quench::calibrate
