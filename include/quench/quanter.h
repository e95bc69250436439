// SPDX-License-Identifier: Apache-2.0
// What fake-quantises a tensor while a model is trained. Needs libtorch's headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quench/quant.h"

namespace quench {

/// A tensor that training changes.
struct Trained {
  std::string name;
  at::Tensor tensor;
  double rate = 1;     ///< times the learning rate
  bool decay = false;  ///< takes part in weight decay
};

/// What a quanter is made from.
struct QuanterSetup {
  QuantSpec spec;
  std::optional<QuantParams> start;  ///< of post-training quantisation, where there was one
  std::optional<Range> bounds;       ///< the scale must not reach beyond these
  bool is_weight = false;
  at::Device device = at::kCPU;      ///< where the tensor lies
  double moving_rate = 0.9;          ///< of moving averages
  std::int64_t window_size = 10000;  ///< of range_abs_max
  double init_value = 0;             ///< of PACT; 0: the range that was calibrated, else 100
  double rate = 1;                   ///< of PACT: times the learning rate
  std::int64_t batch_init = 20;      ///< batches that LSQ+ takes its first scale from
};

/// Fake-quantises one tensor: an activation, or a weight before every step.
class Quanter {
 public:
  virtual ~Quanter() = default;
  /// What the written model will make of `x`, with gradients to `x` and to `parameters`. In
  /// training it may also look at `x` to move its range.
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  /// Scale and zero point as they stand: what is written. Throws where none is known yet.
  virtual QuantParams params() const = 0;
  virtual std::vector<Trained> parameters() const { return {}; }
  /// Tensors that hold the rest of its state, for checkpoints.
  virtual std::vector<at::Tensor> state() const { return {}; }
  /// The weight that is written: other than `weight` where rounding itself is learned.
  virtual at::Tensor written(const at::Tensor& weight) const { return weight; }
  /// Whether a parameter can be quantised yet: false until a first batch was seen.
  virtual bool ready() const { return true; }

  void train(bool on) noexcept { training_ = on; }

 protected:
  bool training() const noexcept { return training_; }

 private:
  bool training_ = true;
};

using QuanterFactory = std::function<std::unique_ptr<Quanter>(const QuanterSetup&)>;

}  // namespace quench
