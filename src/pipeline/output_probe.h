// SPDX-License-Identifier: Apache-2.0
// What other weights do to a model's outputs.
#pragma once

#include "pipeline/weight_items.h"
#include "quench/session.h"

namespace quench {

/// The float outputs for the first batch of the data. Where there are none, for random inputs of
/// the size of normalised data and of bytes: which of both a model expects is not known.
class OutputProbe {
 public:
  OutputProbe(const Model& model, const QuantizeOptions& options, const Context& context);

  struct Difference {
    double error = 0;   ///< squared, relative
    double cosine = 1;  ///< the worst of the outputs
  };
  /// The outputs of the model with other weights beside its own.
  Difference measure(const Model& changed) const;

 private:
  struct Run {
    TensorMap feeds;
    TensorMap expected;
  };
  static Difference measure(Session& session, const Run& run);

  const Context& context_;
  std::vector<Run> runs_;
};

/// The model's weight, and the model with another in its place.
const Tensor& weight_of(const Model& model, const WeightItem& item);
void put_weight(Model& model, const WeightItem& item, const quant::QuantWeight& weight,
                int threads);

}  // namespace quench
