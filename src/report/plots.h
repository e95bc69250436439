// SPDX-License-Identifier: Apache-2.0
// Plots of many tensors as PDF files; drawn by a module that is loaded when one is asked for.
#pragma once

#include <string>
#include <vector>

#include "quench/context.h"
#include "quench/files.h"
#include "quench/statistics.h"

namespace quench::report {

/// A tensor to draw.
struct Plotted {
  std::string name;
  const Statistic* statistic = nullptr;
};

/// Boxes from quantiles, twenty a page, in the order given. All are under one scale, a logarithmic
/// one in both directions where they differ much.
void write_box_plot(const std::vector<Plotted>& tensors, const std::string& title,
                    const std::string& path, const Context& context, Outputs& outputs);
/// A page for each tensor: 50 bins over its range, as shares.
void write_hist_plot(const std::vector<Plotted>& tensors, const std::string& title,
                     const std::string& path, const Context& context, Outputs& outputs);

/// What the module exports.
inline constexpr const char* kDrawBoxes = "quench_draw_boxes";
inline constexpr const char* kDrawBars = "quench_draw_bars";
using DrawPlot = void(const std::vector<Plotted>& tensors, const std::string& title,
                      const std::string& path);

}  // namespace quench::report
