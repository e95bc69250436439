// SPDX-License-Identifier: Apache-2.0
// What add_qat_layer_mapping makes of the layers of a type. Needs libtorch's headers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "quench/error.h"
#include "quench/quanter.h"

namespace quench {

/// What the layers of a type become while training: quanters of their weights and of what they
/// give. An empty one is the configuration's. PaddleSlim's classes can be named: QuantedConv2D,
/// QuantedConv2DTranspose, QuantedLinear, QuantedColumnParallelLinear, QuantedRowParallelLinear,
/// whose quanters are the configuration's.
struct QuantedLayer {
  QuanterFactory weight;
  QuanterFactory activation;

  QuantedLayer(QuanterFactory for_weight, QuanterFactory for_activation)
      : weight(std::move(for_weight)), activation(std::move(for_activation)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a name is given where PaddleSlim takes a class
  QuantedLayer(const std::string& name) {
    if (name.starts_with("Quanted") && !op_types_of_layer(name.substr(7)).empty()) return;
    throw Error(ErrorKind::Usage, "no quantised layer is called '" + name +
                                      "' (there are: QuantedConv2D, QuantedConv2DTranspose, "
                                      "QuantedLinear, QuantedColumnParallelLinear, "
                                      "QuantedRowParallelLinear, or a QuantedLayer with quanters)");
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  QuantedLayer(const char* name) : QuantedLayer(std::string(name)) {}

  /// The operators that a layer of Paddle is, or its own name where the operators around it tell
  /// what it is; none where Paddle's layers are not called that.
  static std::vector<std::string> op_types_of_layer(const std::string& layer) {
    if (layer == "Conv2D") return {"Conv"};
    if (layer == "Conv2DTranspose") return {"ConvTranspose"};
    if (layer == "Linear") return {"Gemm", "MatMul"};
    if (layer == "ColumnParallelLinear" || layer == "RowParallelLinear") return {layer};
    return {};
  }
};

}  // namespace quench
