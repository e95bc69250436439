// SPDX-License-Identifier: Apache-2.0
// A chain of matrix products of a wanted size: what load times are measured on.
#include <cmath>

#include "generate/builder.h"

namespace quench::generate {

Model big(const Options& options) {
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kBytes = kWidth * kWidth * 4;
  const std::int64_t count = (options.size_mb * 1'000'000 + kBytes - 1) / kBytes;
  Builder build(options, "big");
  ValueId value = build.input("x", DType::Float32, {-1, kWidth}, {"N"});
  for (std::int64_t index = 0; index < count; ++index) {
    const double limit = std::sqrt(3.0 / static_cast<double>(kWidth));
    value = build.apply("MatMul", {value, build.weight({kWidth, kWidth}, limit)});
  }
  build.output(value, "y", {-1, kWidth}, {"N"});
  return build.take();
}

}  // namespace quench::generate
