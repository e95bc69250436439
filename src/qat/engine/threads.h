// SPDX-License-Identifier: Apache-2.0
// How many threads libtorch uses while training runs.
#pragma once

#include <omp.h>

#include <new>

#include "base/format.h"
#include "base/memory.h"
#include "exec/device_error.h"
#include "exec/engine/device.h"
#include "exec/engine/pool_allocator.h"
#include "qat/engine/torch.h"
#include "quench/context.h"

namespace quench::qat {

/// As sessions do: OpenMP's number, which the calling thread gets back.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) {
    if (before_ != count) omp_set_num_threads(count);
  }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// Where training keeps its tensors.
inline exec::Placement training_place(const Context& context) {
  if (context.precision == "half") {
    fail(ErrorKind::Usage,
         "training and reconstruction need gradients of more than half precision; take "
         "--precision tf32 or float");
  }
  return exec::open_device(context);
}

[[noreturn]] inline void fail_of_full_gpu() {
  fail(ErrorKind::Unsupported,
       "the GPU's memory is too small for what a step of training or reconstruction makes; take a "
       "smaller --train-batch, or --device cpu");
}

/// Runs `work` under the context's ceiling; what libtorch or memory refuses becomes one sentence.
template <typename Work>
auto without_torch_errors(const Context& context, const Work& work) {
  const exec::CeilingScope ceiling(memory_ceiling(context));
  try {
    return work();
  } catch (const std::bad_alloc&) {
    if (context.max_memory_mb == 0) {
      fail(ErrorKind::Unsupported, "there is not enough memory to train this model");
    }
    fail(ErrorKind::Unsupported,
         "training and reconstruction hold all weights, and what a step makes, in memory: the "
         "ceiling of {} MB is too small; take a higher --max-memory",
         context.max_memory_mb);
  } catch (const Error& error) {  // a step's, with its name
    if (context.device == "cpu" || !exec::gpu_is_full(error.what())) throw;
    fail_of_full_gpu();
  } catch (const c10::Error& error) {
    if (exec::gpu_is_full(error.what())) fail_of_full_gpu();
    const std::string whole = error.what_without_backtrace();
    fail(ErrorKind::Internal, "libtorch: {}", whole.substr(0, whole.find('\n')));
  }
}

}  // namespace quench::qat
