// SPDX-License-Identifier: Apache-2.0
// The kinds of quantisation that leave activations in float until the model runs.
#pragma once

#include "quench/files.h"
#include "quench/quantize.h"

namespace quench {

/// `quantize_to` for QuantType::Weight.
QuantizeReport quantize_weights(const std::string& model_path, const std::string& out_path,
                                const QuantizeOptions& options, const Context& context,
                                Outputs& outputs, Model& written);
/// `quantize_to` for QuantType::Dynamic.
QuantizeReport quantize_dynamic(const std::string& model_path, const std::string& out_path,
                                const QuantizeOptions& options, const Context& context,
                                Outputs& outputs, Model& written);

}  // namespace quench
