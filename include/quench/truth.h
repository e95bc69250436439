// SPDX-License-Identifier: Apache-2.0
// Labels that are more than a class: boxes, texts and masks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quench/data.h"
#include "quench/tensor.h"

namespace quench {

/// What samples should give.
enum class TruthKind { Boxes, Text, Masks };
std::string_view to_string(TruthKind kind);

/// What one sample should give.
struct Truth {
  /// Boxes: float64 [count,5] of x1, y1, x2, y2 and class, in pixels of what the model is fed with.
  /// Text: int64 classes, -1 for a character that the model has not. Masks: int64 [H,W] of classes,
  /// -1 where nothing is asked.
  Tensor values;
  ImageSize size;  ///< of the image that boxes lie in; 0: not known
};

/// The labels of a source, by the `label` of its samples.
class Truths {
 public:
  virtual ~Truths() = default;
  virtual TruthKind kind() const = 0;
  /// Throws Error(BadData) that names the file.
  virtual Truth read(std::int64_t index) const = 0;
  /// How many characters there are; 0: these are no texts.
  virtual std::int64_t characters() const { return 0; }
  /// The file they came from, for messages.
  virtual std::string path() const = 0;
};

}  // namespace quench
