// SPDX-License-Identifier: Apache-2.0
// Tensors before and after quantisation, for the HTML report.
#pragma once

#include "quench/plan.h"
#include "report/html_report.h"

namespace quench::report {

/// An activation, from what calibration has seen; `params` is null where it stays in float.
ReportHistogram activation_histogram(const std::string& name, const Statistic& statistic,
                                     const QuantParams* params);
/// A weight that a plan quantises, or that stays in float.
ReportHistogram weight_histogram(const std::string& name, const Tensor& weight,
                                 const QuantParams* params);
/// A weight that is stored by itself: the scales are those that `node` of the written graph reads
/// it with.
ReportHistogram stored_histogram(const std::string& name, const Tensor& weight, int bits,
                                 const Graph& written, const Node& node);

}  // namespace quench::report
