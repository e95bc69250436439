// SPDX-License-Identifier: Apache-2.0
// Tells libtorch's reasons apart by the words that CUDA's runtime has for them.
#include "exec/device_error.h"

#include "base/format.h"

namespace quench::exec {

bool gpu_is_full(std::string_view reason) {
  // cuBLAS and cuDNN have words of their own: CUBLAS_STATUS_ALLOC_FAILED.
  return reason.find("out of memory") != std::string_view::npos ||
         reason.find("STATUS_ALLOC_FAILED") != std::string_view::npos;
}

Error device_error(const std::string& name, std::string_view reason) {
  const auto says = [&](std::string_view words) {
    return reason.find(words) != std::string_view::npos;
  };
  if (says("too old")) {
    return Error(ErrorKind::Unsupported,
                 "the NVIDIA driver of this machine is too old for this libtorch; take a newer "
                 "driver, an older libtorch, or --device cpu");
  }
  if (says("no NVIDIA driver") || says("No CUDA GPUs") || says("no CUDA-capable device")) {
    return Error(ErrorKind::Unsupported,
                 "this machine has no GPU that CUDA can use (no card, or no driver); take --device "
                 "cpu");
  }
  if (says("invalid device ordinal")) {
    return Error(ErrorKind::Usage,
                 format("this machine has no '{}'; `nvidia-smi -L` lists those that it has", name));
  }
  if (gpu_is_full(reason)) {
    return Error(
        ErrorKind::Unsupported,
        format("'{}' has no memory left: other programs hold it (`nvidia-smi` lists them); "
               "wait for them, or take another GPU or --device cpu",
               name));
  }
  return Error(ErrorKind::Unsupported,
               format("'{}' cannot be used: {}", name, reason.substr(0, reason.find('\n'))));
}

}  // namespace quench::exec
