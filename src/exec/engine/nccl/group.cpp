// SPDX-License-Identifier: Apache-2.0
// libtorch's c10d group over NCCL.
#include "exec/engine/nccl/group.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#pragma GCC diagnostic pop

namespace quench::exec {
namespace {

class Group final : public NcclGroup {
 public:
  Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)
      : group_(c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size)) {}

  std::function<void()> sum(at::Tensor& tensor) override {
    std::vector<at::Tensor> one = {tensor};
    return [work = group_->allreduce(one)] { work->wait(); };
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
};

}  // namespace
}  // namespace quench::exec

extern "C" __attribute__((visibility("default"))) quench::exec::NcclGroup* quench_nccl_group(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  return new quench::exec::Group(store, rank, size);
}
