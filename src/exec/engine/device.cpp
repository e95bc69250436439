// SPDX-License-Identifier: Apache-2.0
// Finds the GPU, and says why there is none.
#include "exec/engine/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>

#include "base/format.h"
#include "exec/device_error.h"
#include "exec/engine/cuda/kernels.h"
#include "exec/fused.h"

namespace quench::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libtorch_cuda.so";

/// libtorch's CUDA half registers its kernels when it is loaded. Linking it would load a gigabyte
/// into every process that only wants the CPU.
void load_cuda() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::error_code ignored;
    const fs::path folder = torch_folder();
    const fs::path path = folder / kLibrary;
    if (!fs::exists(path, ignored)) {
      fail(ErrorKind::Unsupported,
           "this libtorch ({}) has no CUDA; build the engine with one that has, such as that of "
           "Python's torch package (-DTorch_DIR=...), or take --device cpu",
           folder.string());
    }
    if (::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
      const char* reason = ::dlerror();
      fail(ErrorKind::Unsupported, "{} cannot be loaded: {}", path.string(),
           reason == nullptr ? "unknown reason" : reason);
    }
  });
}

at::Device parse(const std::string& name) {
  const bool good =
      name == "cuda" || (name.starts_with("cuda:") && name.size() > 5 && name.size() < 8 &&
                         name.find_first_not_of("0123456789", 5) == std::string::npos);
  if (good) return at::Device(name == "cuda" ? "cuda:0" : name);
  fail(ErrorKind::Usage, "there is no device '{}'; expected cpu, cuda or cuda:1", name);
}

}  // namespace

at::Tensor Placement::there(const at::Tensor& tensor) const {
  const at::ScalarType type = tensor.scalar_type() == at::kFloat ? number : tensor.scalar_type();
  const at::Tensor moved = tensor.to(at::TensorOptions(device).dtype(type));
  // Images and the weights of convolutions: the layout that half-precision units read.
  return moved.dim() == 4 ? moved.contiguous(at::MemoryFormat::ChannelsLast) : moved;
}

at::Tensor Placement::here(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  const at::Tensor moved = tensor.to(at::kCPU);
  return number == at::kHalf && moved.scalar_type() == at::kHalf ? moved.to(at::kFloat) : moved;
}

Placement open_device(const Context& context) {
  constexpr std::array<std::string_view, 3> kPrecisions = {"float", "tf32", "half"};
  if (std::ranges::find(kPrecisions, context.precision) == kPrecisions.end()) {
    fail(ErrorKind::Usage, "there is no precision '{}'; expected float, tf32 or half",
         context.precision);
  }
  if (context.device == "cpu") {
    if (context.precision == "float") return {};
    fail(ErrorKind::Usage, "--precision {} is for a GPU; the CPU computes in float",
         context.precision);
  }
  Placement place{.device = parse(context.device)};
  if (context.precision == "half") place.number = at::kHalf;
  load_cuda();
  try {
    (void)at::zeros({1}, at::TensorOptions(place.device));
  } catch (const std::exception& error) {
    throw device_error(context.device, error.what());
  }
  const bool tf32 = context.precision == "tf32";
  at::globalContext().setAllowTF32CuDNN(tf32);
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setBenchmarkCuDNN(true);
  return place;
}

bool runs_anywhere(const Node& node) {
  constexpr std::string_view kNames[] = {
#define QUENCH_ANYWHERE(op) #op,
#include "exec/engine/device_kernels.inc"
#undef QUENCH_ANYWHERE
  };
  return (node.domain.empty() || node.domain == "ai.onnx" || node.domain == kEngineDomain) &&
         std::ranges::find(kNames, node.op_type) != std::ranges::end(kNames);
}

}  // namespace quench::exec
