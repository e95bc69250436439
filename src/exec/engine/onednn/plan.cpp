// SPDX-License-Identifier: Apache-2.0
// Weights of oneDNN plans.
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

}  // namespace quench::exec
