// SPDX-License-Identifier: Apache-2.0
// Statistics of a tapped value, counted on the GPU: compiled when first used. The arithmetic and its
// order are those of observe/scan.cpp, so that the same values give the same statistic.
#include "exec/engine/cuda/statistics_layout.h"
#include "quant/bin_range.h"
#include "quench/summary.h"

using namespace quench;
using namespace quench::exec;
using namespace quench::quant;
using std::int32_t;
using std::int64_t;

namespace {

constexpr int kAhead = 32;  // loads of a thread that are under way at once

#define kInfinity __int_as_float(0x7f800000)

__device__ float as_float(float value) { return value; }
__device__ float as_float(unsigned short half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

__device__ void look_at(float value, PieceSummary& piece) {
  if (!isfinite(value)) {
    piece.nans += isnan(value) ? 1 : 0;
    return;
  }
  const double wide = value;
  piece.min = value < piece.min ? value : piece.min;
  piece.max = value > piece.max ? value : piece.max;
  piece.sum += wide;
  piece.sum_squares += wide * wide;
  piece.zeros += value == 0.0F ? 1 : 0;
  ++piece.finite;
}

template <typename T>
__device__ void summarize(const T* src, int64_t elements, int64_t pieces, int64_t samples,
                          PieceSummary* out) {
  const int64_t piece = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / kPieceThreads;
  if (piece >= pieces * samples) return;
  const int lane = threadIdx.x % kPieceThreads;
  const int64_t first = (piece % pieces) * kPiece;
  const int64_t count = elements - first < kPiece ? elements - first : kPiece;
  const T* from = src + (piece / pieces) * elements + first;
  PieceSummary own = {kInfinity, -kInfinity, 0, 0, 0, 0, 0, 0};
  const int64_t whole = count / kPieceThreads;
  int64_t row = 0;
  for (; row + kAhead <= whole; row += kAhead) {
    T ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = from[(row + i) * kPieceThreads + lane];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) look_at(as_float(ahead[i]), own);
  }
  for (; row < whole; ++row) look_at(as_float(from[row * kPieceThreads + lane]), own);
  // The elements behind the last whole row come first in the sum, then lane after lane.
  PieceSummary total = {kInfinity, -kInfinity, 0, 0, 0, 0, 0, 0};
  for (int64_t i = whole * kPieceThreads; i < count; ++i) look_at(as_float(from[i]), total);
  const unsigned mask = 0xffffU << (threadIdx.x % 32 / kPieceThreads * kPieceThreads);
  for (int i = 0; i < kPieceThreads; ++i) {
    const float min = __shfl_sync(mask, own.min, i, kPieceThreads);
    const float max = __shfl_sync(mask, own.max, i, kPieceThreads);
    total.min = min < total.min ? min : total.min;
    total.max = max > total.max ? max : total.max;
    total.sum += __shfl_sync(mask, own.sum, i, kPieceThreads);
    total.sum_squares += __shfl_sync(mask, own.sum_squares, i, kPieceThreads);
    total.finite += __shfl_sync(mask, own.finite, i, kPieceThreads);
    total.nans += __shfl_sync(mask, own.nans, i, kPieceThreads);
    total.zeros += __shfl_sync(mask, own.zeros, i, kPieceThreads);
  }
  if (lane == 0) out[piece] = total;
}

template <typename T>
__device__ void count(const T* src, int64_t elements, const SampleSummary* summaries,
                      const SampleBins* ranges, unsigned* histograms) {
  __shared__ unsigned bins[kMaxBins];
  const int64_t sample = blockIdx.y;
  const SampleSummary summary = summaries[sample];
  if (summary.finite == 0) return;
  const SampleBins range = ranges[sample];
  const float width = static_cast<float>(range.width);
  const float inverse = 1.0F / width;
  const auto first = static_cast<int32_t>(range.first);
  const auto size = static_cast<int32_t>(range.count);
  for (int i = threadIdx.x; i < size; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  const int64_t begin = blockIdx.x * kCountedElements;
  const int64_t end = begin + kCountedElements < elements ? begin + kCountedElements : elements;
  const T* from = src + sample * elements;
  // Values that many elements have (zeros behind a ReLU, the ends of a clip) would wait for each
  // other at one counter.
  unsigned at_min = 0;
  unsigned at_max = 0;
  constexpr int kCounted = 16;
  for (int64_t i = begin + threadIdx.x; i < end; i += static_cast<int64_t>(blockDim.x) * kCounted) {
    T ahead[kCounted];
#pragma unroll
    for (int k = 0; k < kCounted; ++k) {
      const int64_t at = i + static_cast<int64_t>(k) * blockDim.x;
      ahead[k] = at < end ? from[at] : T{};
    }
#pragma unroll
    for (int k = 0; k < kCounted; ++k) {
      if (i + static_cast<int64_t>(k) * blockDim.x >= end) continue;
      const float value = as_float(ahead[k]);
      if (value == 0.0F || !isfinite(value)) continue;
      if (value == summary.min) {
        ++at_min;
      } else if (value == summary.max) {
        ++at_max;
      } else {
        atomicAdd(bins + bin_of(value, inverse, width, first, size), 1U);
      }
    }
  }
  if (at_min > 0) atomicAdd(bins + bin_of(summary.min, inverse, width, first, size), at_min);
  if (at_max > 0) atomicAdd(bins + bin_of(summary.max, inverse, width, first, size), at_max);
  __syncthreads();
  unsigned* to = histograms + sample * kMaxBins;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    if (bins[i] > 0) atomicAdd(to + i, bins[i]);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0 && summary.zeros > 0) {
    atomicAdd(to + bin_of(0.0F, inverse, width, first, size),
              static_cast<unsigned>(summary.zeros));
  }
}

}  // namespace

extern "C" __global__ void summarize_float(const float* src, int64_t elements, int64_t pieces,
                                           int64_t samples, PieceSummary* out) {
  summarize(src, elements, pieces, samples, out);
}
extern "C" __global__ void summarize_half(const unsigned short* src, int64_t elements,
                                          int64_t pieces, int64_t samples, PieceSummary* out) {
  summarize(src, elements, pieces, samples, out);
}

/// A thread a sample joins its pieces in their order.
extern "C" __global__ void join_pieces(const PieceSummary* parts, int64_t elements, int64_t pieces,
                                       int64_t samples, SampleSummary* summaries,
                                       SampleBins* ranges) {
  const int64_t sample = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (sample >= samples) return;
  PieceSummary total = parts[sample * pieces];
  int64_t finite = total.finite;
  int64_t nans = total.nans;
  int64_t zeros = total.zeros;
#pragma unroll 16
  for (int64_t i = 1; i < pieces; ++i) {
    const PieceSummary part = parts[sample * pieces + i];
    total.min = part.min < total.min ? part.min : total.min;
    total.max = part.max > total.max ? part.max : total.max;
    total.sum += part.sum;
    total.sum_squares += part.sum_squares;
    finite += part.finite;
    nans += part.nans;
    zeros += part.zeros;
  }
  SampleSummary summary;
  summary.min = total.min;
  summary.max = total.max;
  summary.sum = total.sum;
  summary.sum_squares = total.sum_squares;
  summary.finite = finite;
  summary.nans = nans;
  summary.infinities = elements - finite - nans;
  summary.zeros = zeros;
  summaries[sample] = summary;
  if (finite == 0) return;
  const BinRange range = bin_range(total.min, total.max);
  ranges[sample] = {range.width, range.first, range.count};
}

/// The least and the greatest number of all samples: one block.
extern "C" __global__ void join_ranges(const SampleSummary* summaries, int64_t samples,
                                       SampleBins* common) {
  __shared__ float least[1024];
  __shared__ float most[1024];
  float low = kInfinity;
  float high = -kInfinity;
  for (int64_t i = threadIdx.x; i < samples; i += blockDim.x) {
    if (summaries[i].finite == 0) continue;
    low = fminf(low, summaries[i].min);
    high = fmaxf(high, summaries[i].max);
  }
  least[threadIdx.x] = low;
  most[threadIdx.x] = high;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      least[threadIdx.x] = fminf(least[threadIdx.x], least[threadIdx.x + half]);
      most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const bool any = least[0] <= most[0];
    const BinRange range = any ? bin_range(least[0], most[0]) : BinRange{1, 0, 0};
    *common = {range.width, range.first, range.count};
  }
}

extern "C" __global__ void count_float(const float* src, int64_t elements,
                                       const SampleSummary* summaries, const SampleBins* ranges,
                                       unsigned* histograms) {
  count(src, elements, summaries, ranges, histograms);
}
extern "C" __global__ void count_half(const unsigned short* src, int64_t elements,
                                      const SampleSummary* summaries, const SampleBins* ranges,
                                      unsigned* histograms) {
  count(src, elements, summaries, ranges, histograms);
}

/// A block a sample finds the bins of its two quantiles.
extern "C" __global__ void find_ranks(const unsigned* histograms, const SampleBins* ranges,
                                      SampleSummary* summaries) {
  __shared__ int64_t before[kRankThreads + 1];
  SampleSummary& summary = summaries[blockIdx.x];
  if (summary.finite == 0) return;
  const SampleBins range = ranges[blockIdx.x];
  const unsigned* bins = histograms + blockIdx.x * kMaxBins;
  constexpr int kEach = kMaxBins / kRankThreads;
  int64_t own = 0;
  for (int i = 0; i < kEach; ++i) own += bins[threadIdx.x * kEach + i];
  if (threadIdx.x == 0) before[0] = 0;
  before[threadIdx.x + 1] = own;
  __syncthreads();
  for (int step = 1; step < kRankThreads; step *= 2) {
    const int at = threadIdx.x + 1;
    const int64_t more = at > step ? before[at - step] : 0;
    __syncthreads();
    before[at] += more;
    __syncthreads();
  }
  const int64_t ranks[2] = {low_rank(summary.finite), high_rank(summary.finite)};
  for (int which = 0; which < 2; ++which) {
    const int64_t rank = ranks[which];
    if (before[threadIdx.x] > rank || before[threadIdx.x + 1] <= rank) continue;
    RankPlace place;
    place.below = before[threadIdx.x];
    int64_t bin = threadIdx.x * static_cast<int64_t>(kEach);
    while (bin + 1 < range.count && place.below + bins[bin] <= rank) place.below += bins[bin++];
    place.bin = bin;
    place.inside = bins[bin];
    (which == 0 ? summary.low : summary.high) = place;
  }
}

/// Adds the bins of some samples to those of the common range, a thread for each of these.
extern "C" __global__ void join_bins(const unsigned* histograms, const SampleSummary* summaries,
                                     const SampleBins* ranges, int64_t samples,
                                     const SampleBins* common, unsigned long long* bins) {
  const SampleBins range = *common;
  const int64_t own = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (own >= range.count) return;
  unsigned long long sum = 0;
  const int64_t last = (blockIdx.y + 1) * kJoinedSamples;
  for (int64_t i = blockIdx.y * kJoinedSamples; i < last && i < samples; ++i) {
    if (summaries[i].finite == 0) continue;
    const SampleBins part = ranges[i];
    const int raw = ilogb(range.width) - ilogb(part.width);
    const int shift = raw < 48 ? raw : 48;
    int64_t from = ((range.first + own) << shift) - part.first;
    int64_t to = ((range.first + own + 1) << shift) - part.first;
    from = from < 0 ? 0 : from;
    to = to < part.count ? to : part.count;
    for (int64_t bin = from; bin < to; ++bin) sum += histograms[i * kMaxBins + bin];
  }
  if (sum > 0) atomicAdd(bins + own, sum);
}
