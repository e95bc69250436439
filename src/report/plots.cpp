// SPDX-License-Identifier: Apache-2.0
// Hands plots to the module that draws them.
#include "report/plots.h"

#include "base/file.h"
#include "base/module.h"

namespace quench::report {
namespace {

void draw(const char* symbol, const std::vector<Plotted>& tensors, const std::string& title,
          const std::string& path, const Context& context, Outputs& outputs) {
  auto* plot = reinterpret_cast<DrawPlot*>(module_symbol("plots", symbol, context));
  auto file = std::make_unique<AtomicFile>(path);
  plot(tensors, title, file->temporary_path());
  outputs.add(std::move(file));
}

}  // namespace

void write_box_plot(const std::vector<Plotted>& tensors, const std::string& title,
                    const std::string& path, const Context& context, Outputs& outputs) {
  draw(kDrawBoxes, tensors, title, path, context, outputs);
}

void write_hist_plot(const std::vector<Plotted>& tensors, const std::string& title,
                     const std::string& path, const Context& context, Outputs& outputs) {
  draw(kDrawBars, tensors, title, path, context, outputs);
}

}  // namespace quench::report
