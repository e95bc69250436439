// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's eight PDF files of tensors before and after quantisation.
#pragma once

#include "analyze/tensor_rows.h"
#include "quench/context.h"
#include "quench/files.h"

namespace quench::report {

/// fp_weight_boxplot.pdf and so on, in `folder`.
void write_statistics_plots(const std::vector<analyze::TensorRow>& rows, const std::string& folder,
                            const Context& context, Outputs& outputs);

}  // namespace quench::report
