// SPDX-License-Identifier: Apache-2.0
// Weights and destinations of oneDNN plans.
#include "exec/engine/onednn/plan.h"

#include "base/file.h"

namespace quench::exec {

dnnl::memory PackedWeights::as(const dnnl::memory::desc& wanted) {
  if (!packed_) {
    packed_ = reordered(plain_, desc_, wanted);
    // Mapped weights have been read once and are not needed again.
    release_pages({static_cast<const std::byte*>(plain_.data_ptr()), plain_.nbytes()});
    plain_.reset();
  } else {
    packed_ = reordered(packed_, wanted);
  }
  return packed_;
}

at::Tensor destination(Call& call, const Fusion& fusion, at::MemoryFormat format,
                       at::IntArrayRef shape, ResidualForm& form) {
  form = ResidualForm::Separate;
  if (fusion.residual != Residual::None && call.dies(FloatLayerNode::kResidual)) {
    const at::Tensor& residual = call.in(FloatLayerNode::kResidual);
    if (residual.is_contiguous(format) && residual.scalar_type() == at::kFloat &&
        residual.sizes() == shape) {
      form = ResidualForm::InDestination;
      return residual;
    }
  }
  return at::empty(shape, at::TensorOptions(at::kFloat).memory_format(format));
}

}  // namespace quench::exec
