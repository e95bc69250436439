// SPDX-License-Identifier: Apache-2.0
// A fast kernel beside its reference: random inputs, what it gives and what it should give. The
// contract test and bench/micro read the same list.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "exec/engine/int8/loops.h"
#include "quench/cpu.h"

namespace quench::fast {

using exec::ByteStore;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  std::vector<float> floats(std::int64_t count, float low, float high) {
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& each : result) each = uniform(low, high);
    return result;
  }
  template <typename Byte = std::uint8_t>
  std::vector<Byte> bytes(std::int64_t count) {
    std::vector<Byte> result(static_cast<std::size_t>(count));
    for (Byte& each : result) each = static_cast<Byte>(pick(0, 255));
    return result;
  }
  std::uint8_t flip() { return pick(0, 1) == 0 ? 0 : 0x80; }

 private:
  std::mt19937_64 engine_;
};

/// One call of a kernel. `wanted` computes in double precision; a byte may lie half a step and a
/// hair from it, as rounding has it.
struct Problem {
  std::function<void()> run;
  std::function<std::vector<double>()> got;
  std::function<std::vector<double>()> wanted;
  double absolute = 0;
  double relative = 0;
};

/// How far bytes lie from unrounded numbers.
inline constexpr double kRounded = 0.5 + 1e-3;

/// A problem whose results are elements of `dst`, which `run` fills.
template <typename T>
Problem problem(std::int64_t size, std::function<void(T*)> run,
                std::function<double(std::int64_t)> wanted, double absolute, double relative = 0) {
  auto dst = std::make_shared<std::vector<T>>(static_cast<std::size_t>(size));
  return {.run = [dst, run = std::move(run)] { run(dst->data()); },
          .got = [dst] { return std::vector<double>(dst->begin(), dst->end()); },
          .wanted =
              [size, wanted = std::move(wanted)] {
                std::vector<double> result;
                for (std::int64_t i = 0; i < size; ++i) result.push_back(wanted(i));
                return result;
              },
          .absolute = absolute,
          .relative = relative};
}

/// Zero point and bounds of results, and the byte that a number of steps becomes, unrounded.
ByteStore random_store(Random& random, bool with_zero = true);
double stored(double steps, const ByteStore& store);
inline double flipped(std::uint8_t byte, std::uint8_t flip) {
  return static_cast<double>(byte ^ flip);
}

/// Small sizes for the test, one large for timing.
enum class Size { Small, Large };

struct FastKernel {
  std::string_view name;
  Isa least;
  std::string_view summary;
  Problem (*make)(Random& random, Size size);
};

namespace problems {
#define QUENCH_FAST_KERNEL(name, least, summary) Problem name(Random& random, Size size);
#include "exec/engine/fast_kernels.inc"
#undef QUENCH_FAST_KERNEL
}  // namespace problems

inline std::span<const FastKernel> fast_kernels() {
  static constexpr FastKernel kKernels[] = {
#define QUENCH_FAST_KERNEL(name, least, summary) {#name, Isa::least, summary, problems::name},
#include "exec/engine/fast_kernels.inc"
#undef QUENCH_FAST_KERNEL
  };
  return kKernels;
}

}  // namespace quench::fast
