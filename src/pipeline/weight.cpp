// SPDX-License-Identifier: Apache-2.0
// The kinds of quantisation that leave activations in float until the model runs.
#include "pipeline/weight.h"

#include "base/format.h"

namespace quench {

QuantizeReport quantize_weights(const std::string& model_path, const std::string& /*out_path*/,
                                const QuantizeOptions& /*options*/, const Context& /*context*/) {
  fail(ErrorKind::Unsupported, "'{}': WEIGHT_QUANT is not supported yet; FULL_QUANT is",
       model_path);
}

QuantizeReport quantize_dynamic(const std::string& model_path, const std::string& /*out_path*/,
                                const QuantizeOptions& /*options*/, const Context& /*context*/) {
  fail(ErrorKind::Unsupported, "'{}': DYNAMIC_QUANT is not supported yet; FULL_QUANT is",
       model_path);
}

}  // namespace quench
