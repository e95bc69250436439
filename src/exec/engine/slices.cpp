// SPDX-License-Identifier: Apache-2.0
// Runs a large batch a few samples at a time.
#include "exec/engine/slices.h"

#include <algorithm>

namespace quench::exec {

std::int64_t slice_size(std::int64_t batch, const SampleBytes& bytes, int threads) {
  // Measured with 2 threads, batch 32: a fifth less time for MobileNetV2 and SqueezeNet and an
  // eighth of the memory. Single samples of ResNet-50, which is mostly weights, took 6 % longer,
  // and 8-bit networks at batch 8, which move up to 14 MB a step, 2 to 4 %.
  constexpr double kWhole = 8 << 20;  // a thread's share of what need not be split
  constexpr double kSlice = 3 << 20;
  constexpr double kWeightsShare = 0.25;
  if (static_cast<double>(batch) * bytes.largest <= kWhole * threads) return batch;
  const double fits =
      std::max(kSlice * threads / bytes.largest, bytes.constants / (kWeightsShare * bytes.all));
  if (fits >= static_cast<double>(batch)) return batch;
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(fits));
  for (std::int64_t size = most; 2 * size > most; --size) {
    if (batch % size == 0) return size;
  }
  return most;
}

std::vector<at::Tensor> run_in_slices(Program& program, const Feeds& feeds,
                                      const std::vector<int>& wanted, std::int64_t size) {
  const std::int64_t batch = feeds.front().second.size(0);
  std::vector<std::vector<at::Tensor>> parts(wanted.size());
  for (std::int64_t start = 0; start < batch; start += size) {
    const std::int64_t length = std::min(size, batch - start);
    Feeds slice;
    for (const auto& [slot, tensor] : feeds) {
      slice.emplace_back(slot, tensor.narrow(0, start, length));
    }
    std::vector<at::Tensor> results = program.run_between(std::move(slice), wanted);
    // A file may have declared shapes that its nodes do not keep to.
    const bool rows = std::ranges::all_of(results, [&](const at::Tensor& result) {
      return result.dim() > 0 && result.size(0) == length;
    });
    if (!rows) return program.run_between(feeds, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) parts[i].push_back(std::move(results[i]));
  }
  std::vector<at::Tensor> joined;
  for (const std::vector<at::Tensor>& part : parts) joined.push_back(at::cat(part, 0));
  return joined;
}

}  // namespace quench::exec
