// SPDX-License-Identifier: Apache-2.0
// An observer of one's own.
#include <algorithm>
#include <cmath>

#include "example.h"
#include "quench/ptq.h"

namespace {

/// Six standard deviations around the mean, never beyond what was seen.
quench::Range six_sigma(const quench::Statistic& seen, const quench::QuantSpec& spec) {
  const double reach = 6 * std::sqrt(seen.variance());
  const double low = std::max(seen.min, seen.mean() - reach);
  const double high = std::min(seen.max, seen.mean() + reach);
  const double limit = std::max(-low, high);
  return spec.symmetric ? quench::Range{-limit, limit} : quench::Range{low, high};
}

void run(const example::Arguments& given) {
  quench::QuantizeOptions options;
  options.config.custom_observers["six_sigma"] = six_sigma;
  options.config.global.activation_observer = "six_sigma";
  options.data = example::samples(given.data, 100);
  quench::quantize(given.model, given.out, options);
  example::print_cosine(given);
}

}  // namespace

int main(int argc, char** argv) { return example::run_example(argc, argv, "custom_observer", run); }
