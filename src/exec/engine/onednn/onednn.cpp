// SPDX-License-Identifier: Apache-2.0
// The shared objects of oneDNN.
#include "exec/engine/onednn/onednn.h"

#include <omp.h>

#include <vector>

namespace quench::exec {

ThreadScope::ThreadScope(std::int64_t work) : before_(omp_get_max_threads()) {
  constexpr std::int64_t kWorthSharing = 60'000;
  if (work < kWorthSharing) omp_set_num_threads(1);
}

ThreadScope::~ThreadScope() { omp_set_num_threads(before_); }

dnnl::engine& dnnl_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& dnnl_stream() {
  thread_local dnnl::stream stream(dnnl_engine());
  return stream;
}

void* dnnl_scratch(std::size_t size) {
  thread_local at::Tensor scratch;
  if (!scratch.defined() || scratch.nbytes() < size) {
    scratch = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  }
  return scratch.data_ptr();
}

dnnl::memory::desc describe(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), dnnl::memory::data_type::f32, tensor.strides().vec()};
}

dnnl::memory::data_type dnnl_type(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return dnnl::memory::data_type::u8;
    case at::kChar:
      return dnnl::memory::data_type::s8;
    case at::kInt:
      return dnnl::memory::data_type::s32;
    default:
      return dnnl::memory::data_type::f32;
  }
}

dnnl::memory placeholder(const dnnl::memory::desc& desc) {
  return {desc, dnnl_engine(), DNNL_MEMORY_NONE};
}

dnnl::memory reordered(dnnl::memory source, const dnnl::memory::desc& to) {
  if (source.get_desc() == to) return source;
  dnnl::memory result(to, dnnl_engine());
  dnnl::reorder(source, result).execute(dnnl_stream(), source, result);
  dnnl_stream().wait();
  return result;
}

dnnl::memory reordered(const at::Tensor& tensor, const dnnl::memory::desc& from,
                       const dnnl::memory::desc& to) {
  const dnnl::memory source(from, dnnl_engine(), tensor.data_ptr());
  // Always a copy: the tensor may go away.
  dnnl::memory result(to, dnnl_engine());
  dnnl::reorder(source, result).execute(dnnl_stream(), const_cast<dnnl::memory&>(source), result);
  dnnl_stream().wait();
  return result;
}

}  // namespace quench::exec
