// SPDX-License-Identifier: Apache-2.0
// Texts that become GPU kernels, and the headers that they share with the engine.
#pragma once

#include <span>

namespace quench::exec {

struct CudaText {
  const char* name;  ///< as #include lines have it
  const char* text;
};
/// Every file of the list in CMakeLists.txt.
std::span<const CudaText> cuda_texts();

}  // namespace quench::exec
