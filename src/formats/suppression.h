// SPDX-License-Identifier: Apache-2.0
// Multiclass non-maximum suppression as detectors have it. Before it each class has its own best
// boxes, so every class of every image is an image of its own to ONNX's; after it the best of each
// image stay, ordered by image, class and score.
#pragma once

#include <limits>

#include "quench/graph.h"

namespace quench {

struct SuppressionSettings {
  std::int64_t background = -1;  ///< the class that is none; -1: there is no such
  std::int64_t candidates = -1;  ///< of each class before suppression; -1: all
  std::int64_t most = -1;        ///< of each image after it; -1: all
  double overlap = 0.3;
  double score = 0;
  bool pixels = false;  ///< sides of boxes count pixels, the last one too
};

/// What is left, a row each.
struct Suppressed {
  ValueId image, label, score;  ///< [n, 1]: int64, int64, float
  ValueId box;                  ///< [n, 4]
  ValueId number;               ///< [n, 1]: image * boxes + place
  ValueId of_image;             ///< how many there are of each image
};

/// Of boxes [images, boxes, 4] and scores [images, classes, boxes]. A maker adds nodes, as
/// GraphMaker does.
template <typename Maker>
class Suppression {
 public:
  Suppression(Maker& op, ValueId boxes, ValueId scores, const SuppressionSettings& how)
      : op_(op), how_(how), boxes_(boxes), scores_(scores) {
    images_ = op.size_of(scores_, 0);
    classes_ = op.size_of(scores_, 1);
    count_ = op.size_of(scores_, 2);
    zero_ = op.constant(Tensor::scalar<std::int64_t>(0));
    one_ = op.constant(Tensor::scalar<std::int64_t>(1));
  }

  Suppressed run() {
    choose_candidates();
    suppress();
    keep_best();
    sort();
    return give();
  }

 private:
  ValueId gather(ValueId from, ValueId index, std::int64_t axis = 0) {
    return op_.node("Gather", {from, index}, {{"axis", axis}});
  }
  ValueId add(ValueId a, ValueId b) { return op_.node("Add", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op_.node("Mul", {a, b}); }
  ValueId rows(ValueId shape_of) { return op_.size_of(shape_of, 0); }
  ValueId range(ValueId size) { return op_.node("Range", {zero_, op_.reshape(size, {}), one_}); }

  /// The best boxes of each class: scores and numbers [N, C, K].
  void choose_candidates() {
    ValueId scores = scores_;
    const std::int64_t background = how_.background;
    if (background >= 0) {
      const ValueId ignored = op_.constant(Tensor::scalar<std::int64_t>(background));
      const ValueId is_it = op_.reshape(op_.node("Equal", {range(classes_), ignored}), {-1, 1});
      scores = op_.node(
          "Where",
          {is_it, op_.scalar(std::numeric_limits<float>::lowest(), DType::Float32), scores});
    }
    const std::int64_t most = how_.candidates;
    const ValueId k = most < 0 ? count_ : op_.node("Min", {count_, op_.ints({most})});
    const auto best = op_.nodes("TopK", {scores, k}, 2, {{"axis", std::int64_t{2}}});
    best_scores_ = best[0];
    best_boxes_ = best[1];
  }

  /// Class by class; gives the class and image of each box that is left, and its number.
  void suppress() {
    // Boxes of image n at [n * M + m].
    const ValueId first = op_.reshape(mul(range(images_), count_), {-1, 1, 1});
    const ValueId number = add(best_boxes_, first);
    const ValueId all = op_.reshape(boxes_, {-1, 4});
    const ValueId kept = op_.size_of(number, 2);
    const ValueId minus = op_.ints({-1});
    const auto shape = [&](ValueId middle, ValueId last) {
      return op_.node("Concat", {minus, middle, last}, {{"axis", std::int64_t{0}}});
    };
    ValueId boxes = op_.node("Reshape", {gather(all, number), shape(kept, op_.ints({4}))});
    if (how_.pixels) {
      const Tensor last = Tensor::of<float>({4}, {0.0F, 0.0F, 1.0F, 1.0F});
      boxes = add(boxes, op_.constant(last));  // their sides count pixels
    }
    const ValueId scores = op_.node("Reshape", {best_scores_, shape(op_.ints({1}), kept)});
    const ValueId found = op_.node(
        "NonMaxSuppression", {boxes, scores, kept, scalar_of(how_.overlap), scalar_of(how_.score)});
    const ValueId group = op_.squeeze(op_.slice(found, 1, 0, 1), {1});
    const ValueId place = op_.squeeze(op_.slice(found, 1, 2, 3), {1});
    const ValueId flat = add(mul(group, kept), place);
    group_ = group;
    number_ = gather(op_.reshape(number, {-1}), flat);
    score_ = gather(op_.reshape(best_scores_, {-1}), flat);
  }

  ValueId scalar_of(double value) {
    return op_.constant(Tensor::of<float>({1}, {static_cast<float>(value)}));
  }

  void choose(ValueId index) {
    group_ = gather(group_, index);
    number_ = gather(number_, index);
    score_ = gather(score_, index);
  }

  ValueId image_of(ValueId group) { return op_.node("Div", {group, classes_}); }

  /// In the order of their scores, those with fewer than keep_top_k of their image before them.
  void keep_best() {
    const auto sorted = op_.nodes("TopK", {score_, rows(score_)}, 2, {{"axis", std::int64_t{0}}});
    choose(sorted[1]);
    const std::int64_t most = how_.most;
    if (most < 0) return;
    const ValueId member = op_.node(
        "Equal", {op_.unsqueeze(image_of(group_), {1}), op_.unsqueeze(range(images_), {0})});
    const ValueId mask = op_.cast(member, DType::Int64);
    const ValueId before = op_.node("CumSum", {mask, zero_}, {{"exclusive", std::int64_t{1}}});
    const ValueId place = op_.reduce("ReduceSum", mul(before, mask), {1}, false);
    const ValueId stays =
        op_.node("Less", {place, op_.constant(Tensor::scalar<std::int64_t>(most))});
    choose(op_.reshape(op_.node("NonZero", {stays}), {-1}));
  }

  /// By image and class; within them the order by score stays.
  void sort() {
    const ValueId count = rows(group_);
    const ValueId key = add(mul(group_, count), range(count));
    const auto sorted = op_.nodes("TopK", {key, count}, 2,
                                  {{"axis", std::int64_t{0}}, {"largest", std::int64_t{0}}});
    choose(sorted[1]);
  }

  Suppressed give() {
    const ValueId image = image_of(group_);
    const ValueId label = op_.node("Sub", {group_, mul(image, classes_)});
    const ValueId column = op_.ints({-1, 1});
    const auto upright = [&](ValueId value) { return op_.node("Reshape", {value, column}); };
    const ValueId member =
        op_.node("Equal", {op_.unsqueeze(image, {1}), op_.unsqueeze(range(images_), {0})});
    return {.image = upright(image),
            .label = upright(label),
            .score = upright(score_),
            .box = gather(op_.reshape(boxes_, {-1, 4}), number_),
            .number = upright(number_),
            .of_image = op_.reduce("ReduceSum", op_.cast(member, DType::Int64), {0}, false)};
  }

  Maker& op_;
  SuppressionSettings how_;
  ValueId boxes_, scores_;
  ValueId images_ = kNoValue, classes_ = kNoValue, count_ = kNoValue;
  ValueId zero_ = kNoValue, one_ = kNoValue;
  ValueId best_scores_ = kNoValue, best_boxes_ = kNoValue;
  ValueId group_ = kNoValue;   ///< of each box: image * C + class
  ValueId number_ = kNoValue;  ///< image * M + place
  ValueId score_ = kNoValue;
};

}  // namespace quench
