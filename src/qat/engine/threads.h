// SPDX-License-Identifier: Apache-2.0
// How many threads libtorch uses while training runs.
#pragma once

#include <omp.h>

#include "base/format.h"
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

/// What trains has its tensors on the CPU.
inline void expect_cpu(const Context& context) {
  if (context.device == "cpu") return;
  fail(ErrorKind::Unsupported, "training and reconstruction run on the CPU; leave out --device {}",
       context.device);
}

/// Runs `work`; what libtorch refuses becomes one sentence.
template <typename Work>
auto without_torch_errors(const Work& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    const std::string whole = error.what_without_backtrace();
    fail(ErrorKind::Internal, "libtorch: {}", whole.substr(0, whole.find('\n')));
  }
}

}  // namespace quench::qat
