// SPDX-License-Identifier: Apache-2.0
// AdaRound (Nagel et al., 2020): each weight learns whether it is rounded up or down.
#pragma once

#include "qat/engine/quanters.h"

namespace quench::qat {

/// Begins with rounding to the nearest, softly; `harden` decides. The scale is learned beside it:
/// what integers stand for may move while they stay.
class AdaRound final : public Quanter {
 public:
  AdaRound(const QuantParams& params, const at::Tensor& weight);
  at::Tensor forward(const at::Tensor& weight) override;
  QuantParams params() const override;
  /// The rounding, then the scale.
  std::vector<Trained> parameters() const override;
  at::Tensor written(const at::Tensor& weight) const override;

  /// How far the weights are from being decided, 0 to 1; the greater `sharpness`, the less those in
  /// the middle are pushed.
  at::Tensor undecided(double sharpness) const;
  /// From now on every weight is rounded up or down.
  void harden();

 private:
  at::Tensor rounded_up() const;
  at::Tensor with_rounding(const at::Tensor& up) const;

  QuantParams params_;
  at::Tensor scale_;
  std::int64_t rank_ = 0;  ///< of the weight
  at::Tensor low_;         ///< the integer below each weight, zero point taken off
  at::Tensor least_;
  at::Tensor most_;
  at::Tensor choice_;
  bool hard_ = false;
};

}  // namespace quench::qat
