// SPDX-License-Identifier: Apache-2.0
// Boxes of detection models, from the forms in which models give them.
#pragma once

#include <cstdint>
#include <vector>

#include "quench/tensor.h"
#include "quench/truth.h"

namespace quench::metrics {

struct Box {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double score = 0;
  std::int64_t label = 0;
};
/// Shared area over the area of both.
double overlap(const Box& a, const Box& b);

/// What is below it nobody would draw: the limit that detectors are usually run with.
inline constexpr double kLeastScore = 0.25;
/// Boxes that overlap by this much are of one thing.
inline constexpr double kSameThing = 0.5;

/// Whether an output holds boxes. Three forms are known: rows of x1, y1, x2, y2, score, class; rows
/// of class, score, x1, y1, x2, y2 (Paddle); and [4 + classes, places] or its transpose, of centres
/// and sizes with a score for each class (YOLO), which has no suppression of its own yet.
bool holds_boxes(const Tensor& output);
/// The boxes of every image, the surest first; `like` is the output of the reference, which says
/// the form. Throws Error(BadData) where it is none of those.
std::vector<std::vector<Box>> boxes_of(const Tensor& output, const Tensor& like,
                                       double least_score = kLeastScore);

/// What was found in an image, and what should have been.
struct BoxPair {
  std::vector<Box> found;
  std::vector<Box> wanted;
};
/// Against the reference's output or, where there are truths, against those of the labels
/// `expected`. Outputs between 0 and 1 are taken as shares of the image.
std::vector<BoxPair> pair_boxes(const Tensor& actual, const Tensor& expected, const Truths* truths,
                                double least_score = kLeastScore);

/// For each box of `found`, surest first, the box of `wanted` that it stands for, or -1; each is
/// taken once.
std::vector<std::int64_t> match(const std::vector<Box>& found, const std::vector<Box>& wanted,
                                double least_overlap);

}  // namespace quench::metrics
