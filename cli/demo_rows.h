// SPDX-License-Identifier: Apache-2.0
// What `quench demo` shows: models scored and timed on the same data, and quantised forms of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quench/evaluate.h"

namespace quench::cli {

struct DemoOptions {
  std::vector<std::string> models;
  EvaluateOptions evaluate;
  BenchOptions bench;
  std::string int8_folder;  ///< when given, quantised forms of each model go into it, shown too
  std::int64_t calibration_samples = 200;  ///< the first of the data
};
/// One line of the demo's table. A later column is a new key of `scores` or a new field here.
struct DemoRow {
  std::string model;
  std::int64_t bytes_on_disk = 0;
  std::int64_t samples = 0;
  std::map<std::string, double> scores;
  BenchResult timing;
};
std::vector<DemoRow> demo_rows(const DemoOptions& options, const Context& context);

}  // namespace quench::cli
