// SPDX-License-Identifier: Apache-2.0
// The range of the tensor at hand, anew in every step.
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

class AbsMax final : public RangeQuanter {
 public:
  using RangeQuanter::RangeQuanter;

 private:
  void observe(const at::Tensor& x) override { set(ranges_of(x, spec())); }
};

}  // namespace

std::unique_ptr<Quanter> make_abs_max(const QuanterSetup& setup) {
  return std::make_unique<AbsMax>(setup);
}

}  // namespace quench::qat
