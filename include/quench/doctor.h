// SPDX-License-Identifier: Apache-2.0
// Whether samples are prepared as the model wants them: by trying the usual ways.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quench/context.h"
#include "quench/data.h"

namespace quench {

/// One way to prepare images, and what the float model says of samples that are prepared so.
struct DoctorTrial {
  std::string name;  ///< "as given", or a preset
  ImageOptions image;
  /// Mean over samples of the highest class' share, after the scores of a sample were made to have
  /// mean 0 and deviation 1: sizes of scores, which a wrong scale blows up, do not count.
  double sureness = 0;
  std::optional<double> top1;  ///< percent, where there are labels
};

/// What `doctor` found.
struct DoctorResult {
  std::int64_t samples = 0;
  std::string output;               ///< the class scores that were looked at
  std::vector<DoctorTrial> trials;  ///< the best first
  std::vector<std::string> advice;  ///< sentences; none: as given is as good as any
};

/// Runs a model for images on the first samples, prepared as given and in the usual ways. Throws
/// Error(Unsupported) where the model has no image input or gives no class scores.
DoctorResult doctor(const std::string& model_path, const DataOptions& data,
                    const Context& context = {});

}  // namespace quench
