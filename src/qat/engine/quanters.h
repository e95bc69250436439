// SPDX-License-Identifier: Apache-2.0
// The quanters of quanters.inc, and what those that watch ranges share.
#pragma once

#include "qat/engine/fake_quantize.h"
#include "quench/quanter.h"

namespace quench::qat {

/// By a name that `quanter_called` has given.
std::unique_ptr<Quanter> make_quanter(const std::string& name, const QuanterSetup& setup);

/// Least and greatest number, of each channel where the spec has channels.
std::vector<Range> ranges_of(const at::Tensor& x, const QuantSpec& spec);
std::vector<Range> in_ranges(const at::Tensor& least, const at::Tensor& most);

/// The scale as it stands, without waiting for a GPU where the quanter has it there.
at::Tensor scale_of(const Quanter& quanter);

/// Scale and zero point are found by looking at the tensor.
class RangeQuanter : public Quanter {
 public:
  explicit RangeQuanter(const QuanterSetup& setup);
  at::Tensor forward(const at::Tensor& x) override;
  QuantParams params() const override;
  bool ready() const override { return ready_.item<bool>(); }
  std::vector<at::Tensor> state() const override { return {scale_, zero_point_, ready_}; }

 protected:
  /// Looks at the tensor of a step; calls `set`.
  virtual void observe(const at::Tensor& x) = 0;
  void set(const std::vector<Range>& ranges);
  const QuantSpec& spec() const noexcept { return setup_.spec; }

 private:
  QuanterSetup setup_;
  at::Tensor scale_;
  at::Tensor zero_point_;
  at::Tensor ready_;
};

/// The range that parameters cover, of each channel.
std::vector<Range> covered(const QuantParams& params);

#define QUENCH_QUANTER(name, use, summary) \
  std::unique_ptr<Quanter> make_##name(const QuanterSetup& setup);
#include "qat/quanters.inc"
#undef QUENCH_QUANTER

}  // namespace quench::qat
