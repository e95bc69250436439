// SPDX-License-Identifier: Apache-2.0
// The shared objects of oneDNN.
#include "exec/engine/onednn/onednn.h"

#include <omp.h>

#include <vector>

namespace quench::exec {
namespace {

/// Images have few channels: a plain loop over pixels beats libtorch's general copy by far.
template <std::int64_t kChannels>
void interleave(const float* src, float* dst, std::int64_t pixels) {
  at::parallel_for(0, pixels, 1 << 14, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t c = 0; c < kChannels; ++c) dst[p * kChannels + c] = src[c * pixels + p];
    }
  });
}

}  // namespace

at::Tensor to_nhwc(const at::Tensor& tensor) {
  constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;
  const bool image = tensor.dim() == 4 && tensor.size(1) == 3 && tensor.is_contiguous() &&
                     tensor.scalar_type() == at::kFloat && tensor.numel() != 0;
  if (!image || tensor.is_contiguous(kNhwc)) return tensor.contiguous(kNhwc);
  at::Tensor result = at::empty(tensor.sizes(), tensor.options().memory_format(kNhwc));
  const std::int64_t pixels = tensor.size(2) * tensor.size(3);
  for (std::int64_t n = 0; n < tensor.size(0); ++n) {
    interleave<3>(tensor.data_ptr<float>() + n * 3 * pixels,
                  result.data_ptr<float>() + n * 3 * pixels, pixels);
  }
  return result;
}

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
