// SPDX-License-Identifier: Apache-2.0
// CUDA kernels of our own, compiled by NVRTC when they are first asked for: neither a CUDA compiler
// nor CUDA's headers are needed to build the engine, and any GPU gets code of its own.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace quench::exec {

/// Blocks and threads of a launch.
struct Launch {
  std::int64_t x = 1;
  std::int64_t y = 1;
  int threads = 256;
};

/// The kernels of one file of cuda/, for the current GPU. Launches go to libtorch's stream.
class CudaKernels {
 public:
  virtual ~CudaKernels() = default;

  template <typename... Arguments>
  void launch(const char* name, const Launch& size, Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> pointers = {static_cast<void*>(&arguments)...};
    start(name, size, pointers.data());
  }

 protected:
  virtual void start(const char* name, const Launch& size, void** arguments) = 0;
};

/// The folder of libtorch's libraries in this process.
std::filesystem::path torch_folder();

/// By the name of a .cu file of CMakeLists.txt. Throws Error(Unsupported) that says why they cannot
/// be had; the second call for one GPU gives the first one's.
std::shared_ptr<CudaKernels> cuda_kernels(const std::string& file, int gpu);

}  // namespace quench::exec
