// SPDX-License-Identifier: Apache-2.0
// Two passes over each tensor: what it comes to, then its bins.
#include "exec/engine/cuda/count.h"

#include "exec/engine/cuda/statistics_layout.h"
#include "quant/bin_range.h"

namespace quench::exec {
namespace {

constexpr int kThreads = 256;
constexpr auto kBinsBytes = static_cast<std::int64_t>(sizeof(SampleBins));

std::int64_t divided(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

/// Any order of elements will do as long as samples stay apart.
at::Tensor in_samples(const at::Tensor& value) {
  const at::Tensor rows = value.dim() == 0 ? value.reshape({1}) : value;
  const bool apart =
      rows.is_non_overlapping_and_dense() && rows.stride(0) * rows.size(0) == rows.numel();
  return apart ? rows : rows.contiguous();
}

}  // namespace

TapCounter::TapCounter(at::Device device)
    : kernels_(cuda_kernels("statistics", device.index())), device_(device) {}

void TapCounter::count(std::size_t tap, const at::Tensor& value) {
  const at::Tensor rows = in_samples(value);
  const bool half = rows.scalar_type() == at::kHalf;
  const std::int64_t samples = rows.size(0);
  const std::int64_t elements = rows.numel() / samples;
  const std::int64_t pieces = divided(elements, quant::kPiece);
  const auto bytes = at::TensorOptions(device_).dtype(at::kByte);
  const auto summary_bytes = samples * static_cast<std::int64_t>(sizeof(SampleSummary));
  const at::Tensor parts =
      at::empty({samples * pieces * static_cast<std::int64_t>(sizeof(PieceSummary))}, bytes);
  const at::Tensor histograms =
      at::zeros({samples, quant::kMaxBins}, at::TensorOptions(device_).dtype(at::kInt));
  const at::Tensor ranges = at::empty({(samples + 1) * kBinsBytes}, bytes);
  void* common = static_cast<char*>(ranges.data_ptr()) + samples * kBinsBytes;
  const at::Tensor result = at::zeros(
      {summary_bytes + quant::kMaxBins * static_cast<std::int64_t>(sizeof(std::int64_t))}, bytes);
  void* summaries = result.data_ptr();
  void* bins = static_cast<char*>(summaries) + summary_bytes;
  kernels_->launch(half ? "summarize_half" : "summarize_float",
                   {.x = divided(samples * pieces * kPieceThreads, kThreads), .threads = kThreads},
                   rows.data_ptr(), elements, pieces, samples, parts.data_ptr());
  kernels_->launch("join_pieces", {.x = divided(samples, 32), .threads = 32}, parts.data_ptr(),
                   elements, pieces, samples, summaries, ranges.data_ptr());
  kernels_->launch("join_ranges", {.threads = 1024}, summaries, samples, common);
  kernels_->launch(half ? "count_half" : "count_float",
                   {.x = divided(elements, kCountedElements), .y = samples, .threads = kThreads},
                   rows.data_ptr(), elements, summaries, ranges.data_ptr(), histograms.data_ptr());
  kernels_->launch("find_ranks", {.x = samples, .threads = kRankThreads}, histograms.data_ptr(),
                   ranges.data_ptr(), summaries);
  kernels_->launch(
      "join_bins",
      {.x = quant::kMaxBins / kThreads, .y = divided(samples, kJoinedSamples), .threads = kThreads},
      histograms.data_ptr(), summaries, ranges.data_ptr(), samples, common, bins);
  counted_[tap].push_back({.samples = samples, .bytes = result});
}

void TapCounter::show(const std::function<void(const TapSummary&)>& on_summary) {
  if (counted_.empty()) return;
  std::vector<at::Tensor> all;
  for (const auto& [tap, parts] : counted_) {
    for (const Counted& part : parts) all.push_back(part.bytes);
  }
  // One copy, which waits for the whole run.
  const at::Tensor here = at::cat(all).to(at::kCPU);
  struct Job {
    std::size_t tap;
    const std::vector<Counted>* parts;
    const std::uint8_t* bytes;
  };
  std::vector<Job> jobs;
  const auto* at = here.data_ptr<std::uint8_t>();
  for (const auto& [tap, parts] : counted_) {
    jobs.push_back({tap, &parts, at});
    for (const Counted& part : parts) at += part.bytes.numel();
  }
  at::parallel_for(
      0, static_cast<std::int64_t>(jobs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Job& job = jobs[static_cast<std::size_t>(i)];
          const std::uint8_t* from = job.bytes;
          for (const Counted& part : *job.parts) {
            const auto samples = static_cast<std::size_t>(part.samples);
            const auto* summaries = reinterpret_cast<const SampleSummary*>(from);
            const auto* bins = reinterpret_cast<const std::int64_t*>(summaries + samples);
            on_summary({.tap = job.tap,
                        .samples = {summaries, samples},
                        .bins = {bins, static_cast<std::size_t>(quant::kMaxBins)}});
            from += part.bytes.numel();
          }
        }
      });
  counted_.clear();
}

}  // namespace quench::exec
