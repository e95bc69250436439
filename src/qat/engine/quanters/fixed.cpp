// SPDX-License-Identifier: Apache-2.0
// The scale that was calibrated.
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

class Fixed final : public RangeQuanter {
 public:
  using RangeQuanter::RangeQuanter;

 private:
  void observe(const at::Tensor& x) override {
    if (!ready()) set(ranges_of(x, spec()));  // nothing was calibrated: the first batch does
  }
};

}  // namespace

std::unique_ptr<Quanter> make_fixed(const QuanterSetup& setup) {
  return std::make_unique<Fixed>(setup);
}

}  // namespace quench::qat
