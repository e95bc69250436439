// SPDX-License-Identifier: Apache-2.0
// The settings of libtorch and oneDNN that are one for the process.
#include "exec/engine/start.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "base/cpu.h"
#include "exec/engine/pool_allocator.h"

namespace quench::exec {
namespace {

/// oneDNN takes a cap only before its first primitive. Without a cap of ours it keeps the one of
/// its own environment variable.
void cap_onednn() {
  switch (max_isa()) {
    case Isa::Portable:
      (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      break;
    case Isa::Avx2:
      (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      break;
    case Isa::Avx512:
      (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
      break;
    case Isa::Vnni:
      (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_vnni);
      break;
    case Isa::Vbmi:
      break;
  }
}

}  // namespace

void start_engine() {
  static const bool kStarted = [] {
    use_pool_allocator();
    cap_onednn();
    return true;
  }();
  (void)kStarted;
}

bool multiplies_bytes_exactly() {
  if (max_isa() < Isa::Vnni) return false;
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx512_mic:
    case dnnl::cpu_isa::avx512_mic_4ops:
    case dnnl::cpu_isa::avx512_core:
      return false;
    default:
      return true;
  }
}

}  // namespace quench::exec
