// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's statistic.csv, and what plots read off a statistic.
#include "report/statistics_table.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/csv.h"

namespace quench::report {
namespace {

using analyze::TensorRow;

void add_numbers(const Statistic& statistic, std::vector<std::string>& fields) {
  if (statistic.count == 0) {
    fields.insert(fields.end(), 4, "");
    return;
  }
  for (const double value : {statistic.min, statistic.max, statistic.mean(),
                             std::sqrt(std::max(0.0, statistic.variance()))}) {
    fields.push_back(format("{:.4f}", value));
  }
}

}  // namespace

std::string statistics_table(std::vector<TensorRow> rows) {
  std::ranges::sort(rows, [](const TensorRow& a, const TensorRow& b) {
    return std::tie(a.is_weight, a.name, a.weight) < std::tie(b.is_weight, b.name, b.weight);
  });
  std::vector<std::string> head = {"Var Name", "Var Type", "Corresponding Weight Name"};
  for (const char* kind : {"FP32", "Quantized", "Diff", "Integer"}) {
    for (const char* what : {"Min", "Max", "Mean", "Std"})
      head.push_back(format("{} {}", kind, what));
  }
  std::string text = csv_line(head);
  for (const TensorRow& row : rows) {
    std::vector<std::string> fields = {row.name, row.is_weight ? "Weight" : "Activation",
                                       row.weight};
    add_numbers(row.real, fields);
    add_numbers(row.quantized, fields);
    add_numbers(row.difference, fields);
    add_numbers(row.integers, fields);
    text += csv_line(fields);
  }
  return text;
}

double quantile(const Statistic& statistic, double p) {
  if (statistic.count == 0) return 0;
  const double wanted = p * static_cast<double>(statistic.count);
  double below = 0;
  for (std::size_t i = 0; i < statistic.bins.size(); ++i) {
    const auto here = static_cast<double>(statistic.bins[i]);
    if (here > 0 && below + here >= wanted) {
      const double start = static_cast<double>(statistic.first_bin + static_cast<std::int64_t>(i)) *
                           statistic.bin_width;
      const double value = start + statistic.bin_width * (wanted - below) / here;
      return std::clamp(value, statistic.min, statistic.max);
    }
    below += here;
  }
  return statistic.max;
}

std::vector<double> shares(const Statistic& statistic, std::size_t count) {
  std::vector<double> result(count, 0);
  if (statistic.count == 0 || count == 0) return result;
  const double width = (statistic.max - statistic.min) / static_cast<double>(count);
  for (std::size_t i = 0; i < statistic.bins.size(); ++i) {
    const double middle =
        (static_cast<double>(statistic.first_bin + static_cast<std::int64_t>(i)) + 0.5) *
        statistic.bin_width;
    const double place = width > 0 ? (middle - statistic.min) / width : 0;
    const double last = static_cast<double>(count) - 1;
    result[static_cast<std::size_t>(std::clamp(place, 0.0, last))] +=
        static_cast<double>(statistic.bins[i]) / static_cast<double>(statistic.count);
  }
  return result;
}

}  // namespace quench::report
