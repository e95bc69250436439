// SPDX-License-Identifier: Apache-2.0
// Boxes and histograms of weights and activations, float and quantised.
#include "report/statistics_plots.h"

#include <filesystem>
#include <set>

#include "base/format.h"
#include "report/plots.h"

namespace quench::report {
namespace {

/// Each tensor once, in the order of the network: an activation may have a row for each layer that
/// reads it.
std::vector<Plotted> plotted(const std::vector<analyze::TensorRow>& rows, bool weights,
                             bool quantized) {
  std::set<std::string> seen;
  std::vector<Plotted> result;
  for (const analyze::TensorRow& row : rows) {
    if (row.is_weight != weights || !seen.insert(row.name).second) continue;
    result.push_back({.name = row.name, .statistic = quantized ? &row.quantized : &row.real});
  }
  return result;
}

}  // namespace

void write_statistics_plots(const std::vector<analyze::TensorRow>& rows, const std::string& folder,
                            const Context& context, Outputs& outputs) {
  for (const bool quantized : {false, true}) {
    for (const bool weights : {false, true}) {
      const auto tensors = plotted(rows, weights, quantized);
      const std::string stem =
          format("{}_{}", quantized ? "quantized" : "fp", weights ? "weight" : "activation");
      const std::string title =
          format("{} {}", quantized ? "quantised" : "float", weights ? "weights" : "activations");
      write_box_plot(tensors, title,
                     (std::filesystem::path(folder) / (stem + "_boxplot.pdf")).string(), context,
                     outputs);
      write_hist_plot(tensors, title,
                      (std::filesystem::path(folder) / (stem + "_histplot.pdf")).string(), context,
                      outputs);
    }
  }
}

}  // namespace quench::report
