// SPDX-License-Identifier: Apache-2.0
// A scale that is learned, as LSQ and LSQ+ do.
#pragma once

#include "qat/engine/quanters.h"

namespace quench::qat {

/// Where nothing was calibrated the scale starts with the first batch, and follows the next
/// `batch_init` ones: weights by their mean and deviation, activations by their range.
class LearnedScale : public Quanter {
 public:
  LearnedScale(const QuanterSetup& setup, bool learns_offset);
  at::Tensor forward(const at::Tensor& x) override;
  QuantParams params() const override;
  std::vector<Trained> parameters() const override;
  std::vector<at::Tensor> state() const override { return {zero_point_, batches_}; }
  bool ready() const override { return batches_.item<std::int64_t>() != 0; }
  at::Tensor scale() const { return scale_.detach(); }

 private:
  void start_with(const QuantParams& params);
  void follow(const at::Tensor& x);
  /// Keeps the scale positive and inside the bounds; the zero point follows the offset.
  void keep_legal();
  double greatest() const;  ///< the greatest number that may be reached

  QuanterSetup setup_;
  bool learns_offset_;
  at::Tensor scale_;
  at::Tensor offset_;      ///< the float that the lowest integer stands for
  at::Tensor zero_point_;  ///< whole numbers
  at::Tensor batches_;     ///< seen; -1: it began with what was calibrated
};

}  // namespace quench::qat
