// SPDX-License-Identifier: Apache-2.0
// The module `nccl`: loads, and sums on a GPU. Several ranks take a GPU each, which few machines
// have.
#include <gtest/gtest.h>

#include <memory>

#include "base/module.h"
#include "exec/engine/nccl/group.h"
#include "quench/context.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#pragma GCC diagnostic pop

namespace quench::exec {
namespace {

TEST(Nccl, OneRankSumsToWhatItHas) {
  if (!at::hasCUDA() || at::getNumGPUs() == 0) GTEST_SKIP() << "no GPU here";
  const Context context;
  const auto make =
      reinterpret_cast<NcclFunction>(module_symbol("nccl", "quench_nccl_group", context));
  const std::unique_ptr<NcclGroup> group(make(c10::make_intrusive<c10d::HashStore>(), 0, 1));
  at::Tensor first = at::arange(1000, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  at::Tensor second = at::ones({7}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const auto wait_first = group->sum(first);
  const auto wait_second = group->sum(second);
  wait_first();
  wait_second();
  EXPECT_EQ(first.sum().item<float>(), 499500.0F);
  EXPECT_EQ(second.sum().item<float>(), 7.0F);
}

}  // namespace
}  // namespace quench::exec
