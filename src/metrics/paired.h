// SPDX-License-Identifier: Apache-2.0
// Two quantised models beside each other on the same samples: how far their SQNRs lie apart, and
// how far that is to be trusted.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace quench::metrics {

/// Energies of one output in one sample, and of those of its values that are peaks.
struct SampleNoise {
  double signal = 0;
  double noise = 0;
  double peak_signal = 0;
  double peak_noise = 0;
};
/// By sample.
using OutputNoise = std::vector<SampleNoise>;

/// The SQNR of an output in dB without sample `skipped` (one past the last: of all), at most 200.
double sqnr_without(const OutputNoise& output, std::size_t skipped);
/// Likewise the less of it and that of the peaks, where there are any.
double nearness_without(const OutputNoise& output, std::size_t skipped);

/// A difference in dB and its standard error.
struct Difference {
  double db = 0;
  double error = 0;
};
/// The error by leaving out each sample in turn (the jackknife). A difference that a single sample
/// makes is always larger than its error: rare losses count.
Difference paired(std::size_t samples,
                  const std::function<double(std::size_t skipped)>& difference);

}  // namespace quench::metrics
