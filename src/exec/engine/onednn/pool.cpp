// SPDX-License-Identifier: Apache-2.0
// Pools on NHWC memory.
#include "exec/engine/kernels/pool.h"

#include "exec/engine/onednn/plan.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

/// Keeps one primitive for each shape of the source.
class FastPool {
 public:
  FastPool(Pool pool, dnnl::algorithm algorithm) : pool_(std::move(pool)), algorithm_(algorithm) {}

  /// Whether oneDNN computes what ONNX means for this input.
  bool accepts(const at::Tensor& x) const {
    const bool bytes = x.scalar_type() == at::kByte || x.scalar_type() == at::kChar;
    const bool type_fits =
        x.scalar_type() == at::kFloat || (bytes && algorithm_ == dnnl::algorithm::pooling_max);
    return x.dim() == 4 && type_fits && x.numel() != 0 && x.is_contiguous(kNhwc) && x.size(1) > 1;
  }

  at::Tensor operator()(const at::Tensor& src) {
    const Ints pads = pool_.window.pads_for(src.sizes().slice(2), pool_.window.kernel);
    const Ints ends = with_extra(pads, ceil_extra(pool_, src.sizes().slice(2), pads));
    Ints shape = {src.size(0), src.size(1)};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t room = src.size(static_cast<std::int64_t>(2 + i)) + ends[i] + ends[2 + i];
      shape.push_back((room - pool_.window.kernel[i]) / pool_.window.strides[i] + 1);
    }
    const at::Tensor dst = at::empty(shape, src.options().memory_format(kNhwc));
    Ints key = src.sizes().vec();
    key.push_back(static_cast<std::int64_t>(src.scalar_type()));
    Plan& plan = plans_.get(key, [&] { return make_plan(src, shape, ends); });
    point(plan.src, src);
    point(plan.dst, dst);
    plan.execute();
    return dst;
  }

 private:
  Plan make_plan(const at::Tensor& src, const Ints& shape, const Ints& pads) const {
    const Window& window = pool_.window;
    const auto type = dnnl_type(src.scalar_type());
    const memory::desc src_desc(src.sizes().vec(), type, memory::format_tag::nhwc);
    const memory::desc dst_desc(shape, type, memory::format_tag::nhwc);
    const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm_, src_desc,
                                           dst_desc, window.strides, window.kernel,
                                           {pads[0], pads[1]}, {pads[2], pads[3]});
    const ThreadScope threads(4 * src.numel());
    const dnnl::pooling_forward::primitive_desc pd(
        desc, attributes_for({}, ResidualForm::Separate, dst_desc), dnnl_engine());
    Plan plan;
    plan.primitive = dnnl::pooling_forward(pd);
    plan.src = placeholder(pd.src_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src}};
    plan.bind(pd, {}, ResidualForm::Separate);
    return plan;
  }

  Pool pool_;
  dnnl::algorithm algorithm_;
  PlanCache plans_;
};

}  // namespace

FastPoolFunction make_fast_pool(const Pool& pool, PoolKind kind) {
  const bool small_pads =
      pool.rank == 2 && pool.window.pads.size() == 4 &&
      std::max(pool.window.pads[0], pool.window.pads[2]) < pool.window.kernel[0] &&
      std::max(pool.window.pads[1], pool.window.pads[3]) < pool.window.kernel[1];
  const bool plain = small_pads && pool.rank == 2 && !pool.lifted &&
                     pool.window.dilations == Ints{1, 1} && pool.window.auto_pad == "NOTSET" &&
                     !(pool.ceil && pool.count_pads);
  if (!plain) return {};
  auto algorithm = dnnl::algorithm::pooling_max;
  if (kind == PoolKind::Average) {
    algorithm = pool.count_pads ? dnnl::algorithm::pooling_avg_include_padding
                                : dnnl::algorithm::pooling_avg_exclude_padding;
  }
  auto fast = std::make_shared<FastPool>(pool, algorithm);
  return [fast](const at::Tensor& x) -> std::optional<at::Tensor> {
    if (!fast->accepts(x)) return std::nullopt;
    return (*fast)(x);
  };
}

}  // namespace quench::exec
