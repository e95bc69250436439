// SPDX-License-Identifier: Apache-2.0
// oneDNN: its engine, and its view of libtorch's memory.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "exec/engine/torch.h"

namespace quench::exec {

dnnl::engine& dnnl_engine();
/// The stream of the calling thread.
dnnl::stream& dnnl_stream();
/// Memory for a primitive's intermediate results, shared by all primitives of the thread.
void* dnnl_scratch(std::size_t size);

/// Primitives made in this scope use one thread when their work (in floating-point operations) is
/// too small to share: waking the others costs about two microseconds.
class ThreadScope {
 public:
  explicit ThreadScope(std::int64_t work);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

using DnnlArgs = std::unordered_map<int, dnnl::memory>;

/// The tensor in NHWC order, as oneDNN's fast kernels want it; itself where it lies so already.
at::Tensor to_nhwc(const at::Tensor& tensor);

/// Sizes and strides of a float tensor, as oneDNN describes them.
dnnl::memory::desc describe(const at::Tensor& tensor);
/// oneDNN's name of a type: bytes, 32-bit integers, else float.
dnnl::memory::data_type dnnl_type(at::ScalarType type);
/// A memory object over nothing yet; `point` gives it its bytes before each run.
dnnl::memory placeholder(const dnnl::memory::desc& desc);
inline void point(dnnl::memory& memory, const at::Tensor& tensor) {
  memory.set_data_handle(tensor.data_ptr());
}
/// A copy of `tensor`, seen as `from`, in the layout `to`.
dnnl::memory reordered(const at::Tensor& tensor, const dnnl::memory::desc& from,
                       const dnnl::memory::desc& to);
/// A copy in another layout.
dnnl::memory reordered(dnnl::memory source, const dnnl::memory::desc& to);

}  // namespace quench::exec
