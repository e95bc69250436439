// SPDX-License-Identifier: Apache-2.0
// The loops that quantise a run of values; plain, so that compilers vectorise them.
#include "quant/kernels.h"

#include "base/cpu.h"
#include "quant/lanes.h"

namespace quench::quant {
namespace {

// Adding and taking away 1.5 * 2^23 rounds to nearest even on every instruction set, as long as the
// value is below 2^22: clamping comes first, and the bounds are integers, so the order is free.
constexpr float kRounder = 12582912.0F;

inline float rounded(float value, const LoopParams& params) {
  float steps = value / params.scale;
  steps = steps == steps ? steps : 0.0F;
  steps = steps < params.low ? params.low : steps;
  steps = steps > params.high ? params.high : steps;
  return (steps + kRounder) - kRounder;
}

/// Those of an element of a run, and of a row.
inline LoopParams params_at(const LoopParams& params, std::int64_t) { return params; }
inline LoopParams params_at(const RowParams& params, std::int64_t i) {
  return {params.scale[i], params.low[i], params.high[i], params.zero_point[i]};
}

template <typename Integer, typename Params>
QUENCH_INLINE void quantize_loop(const float* __restrict src, std::int64_t count,
                                 const Params& given, Integer* __restrict dst) {
  const Params params = given;
  for (std::int64_t i = 0; i < count; ++i) {
    const LoopParams own = params_at(params, i);
    dst[i] = static_cast<Integer>(static_cast<std::int32_t>(rounded(src[i], own) + own.zero_point));
  }
}

template <typename Integer, typename Params>
QUENCH_INLINE void dequantize_loop(const Integer* __restrict src, std::int64_t count,
                                   const Params& given, float* __restrict dst) {
  const Params params = given;
  for (std::int64_t i = 0; i < count; ++i) {
    const LoopParams own = params_at(params, i);
    dst[i] = (static_cast<float>(src[i]) - own.zero_point) * own.scale;
  }
}

template <typename Params>
QUENCH_INLINE void fake_quantize_loop(const float* __restrict src, std::int64_t count,
                                      const Params& given, float* __restrict dst) {
  const Params params = given;
  for (std::int64_t i = 0; i < count; ++i) {
    const LoopParams own = params_at(params, i);
    dst[i] = rounded(src[i], own) * own.scale;
  }
}

}  // namespace

// Versions need ordinary functions, so types are spelled out. A type takes no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define QUENCH_QUANT_LOOPS(Integer, Params, name)                                                 \
  QUENCH_MULTIVERSION(void, quantize_##name,                                                      \
                      (const float* src, std::int64_t count, const Params& params, Integer* dst), \
                      (src, count, params, dst)) {                                                \
    quantize_loop(src, count, params, dst);                                                       \
  }                                                                                               \
  QUENCH_MULTIVERSION(void, dequantize_##name,                                                    \
                      (const Integer* src, std::int64_t count, const Params& params, float* dst), \
                      (src, count, params, dst)) {                                                \
    dequantize_loop(src, count, params, dst);                                                     \
  }                                                                                               \
  template <>                                                                                     \
  void quantize(const float* src, std::int64_t count, const Params& params, Integer* dst) {       \
    quantize_##name(src, count, params, dst);                                                     \
  }                                                                                               \
  template <>                                                                                     \
  void dequantize(const Integer* src, std::int64_t count, const Params& params, float* dst) {     \
    dequantize_##name(src, count, params, dst);                                                   \
  }
QUENCH_QUANT_LOOPS(std::int8_t, LoopParams, s8)
QUENCH_QUANT_LOOPS(std::uint8_t, LoopParams, u8)
QUENCH_QUANT_LOOPS(std::int16_t, LoopParams, s16)
QUENCH_QUANT_LOOPS(std::uint16_t, LoopParams, u16)
QUENCH_QUANT_LOOPS(std::int8_t, RowParams, row_s8)
QUENCH_QUANT_LOOPS(std::uint8_t, RowParams, row_u8)
QUENCH_QUANT_LOOPS(std::int16_t, RowParams, row_s16)
QUENCH_QUANT_LOOPS(std::uint16_t, RowParams, row_u16)
#undef QUENCH_QUANT_LOOPS
// NOLINTEND(bugprone-macro-parentheses)

QUENCH_MULTIVERSION(void, fake_quantize_run,
                    (const float* src, std::int64_t count, const LoopParams& params, float* dst),
                    (src, count, params, dst)) {
  fake_quantize_loop(src, count, params, dst);
}
QUENCH_MULTIVERSION(void, fake_quantize_row,
                    (const float* src, std::int64_t count, const RowParams& params, float* dst),
                    (src, count, params, dst)) {
  fake_quantize_loop(src, count, params, dst);
}
void fake_quantize(const float* src, std::int64_t count, const LoopParams& params, float* dst) {
  fake_quantize_run(src, count, params, dst);
}
void fake_quantize(const float* src, std::int64_t count, const RowParams& params, float* dst) {
  fake_quantize_row(src, count, params, dst);
}

QUENCH_MULTIVERSION(double, squared_error,
                    (const float* __restrict src, std::int64_t count, const LoopParams& params),
                    (src, count, params)) {
  const LoopParams own = params;
  Lanes<double> lanes;
  std::int64_t i = 0;
  for (; i + kNumLanes <= count; i += kNumLanes) {
    for (int lane = 0; lane < kNumLanes; ++lane) {
      const float value = src[i + lane];
      const auto error = static_cast<double>(value - rounded(value, own) * own.scale);
      lanes[lane] += error * error;
    }
  }
  for (; i < count; ++i) {
    const auto error = static_cast<double>(src[i] - rounded(src[i], own) * own.scale);
    lanes[0] += error * error;
  }
  return lanes.total();
}

}  // namespace quench::quant
