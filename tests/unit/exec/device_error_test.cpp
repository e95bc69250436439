// SPDX-License-Identifier: Apache-2.0
// One sentence for each way in which a GPU cannot be used, from what libtorch says of it.
#include "exec/device_error.h"

#include <gtest/gtest.h>

namespace quench::exec {
namespace {

struct Row {
  const char* reason;
  ErrorKind kind;
  const char* mention;
};

TEST(DeviceError, SaysWhatIsMissing) {
  // As libtorch 1.13 and 2.11 say it.
  const Row rows[] = {
      {"The NVIDIA driver on your system is too old (found version 11040). Please update your GPU "
       "driver by downloading and installing a new version from the URL: ...",
       ErrorKind::Unsupported, "driver of this machine is too old"},
      {"Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
       "installed a driver from ...",
       ErrorKind::Unsupported, "no GPU that CUDA can use"},
      {"No CUDA GPUs are available", ErrorKind::Unsupported, "no GPU that CUDA can use"},
      {"CUDA error: no CUDA-capable device is detected\nCUDA kernel errors might be ...",
       ErrorKind::Unsupported, "no GPU that CUDA can use"},
      {"CUDA error: invalid device ordinal\nGPU device may be out of range", ErrorKind::Usage,
       "this machine has no 'cuda:7'"},
      {"CUDA error: out of memory\nCUDA kernel errors might be ...", ErrorKind::Unsupported,
       "'cuda:7' has no memory left"},
      {"CUDA error: something else\nand a long explanation", ErrorKind::Unsupported,
       "'cuda:7' cannot be used: CUDA error: something else"}};
  for (const Row& row : rows) {
    const Error error = device_error("cuda:7", row.reason);
    const std::string sentence = error.what();
    EXPECT_EQ(error.kind(), row.kind) << sentence;
    EXPECT_NE(sentence.find(row.mention), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

TEST(DeviceError, KnowsAFullGpu) {
  // As libtorch 2.x, CUDA, cuBLAS and cuDNN say it.
  for (const char* reason :
       {"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of ...",
        "CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublas",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"}) {
    EXPECT_TRUE(gpu_is_full(reason)) << reason;
  }
  for (const char* reason : {"CUDA error: an illegal memory access was encountered",
                             "shape '[2, 3]' is invalid for input of size 5"}) {
    EXPECT_FALSE(gpu_is_full(reason)) << reason;
  }
}

}  // namespace
}  // namespace quench::exec
