// SPDX-License-Identifier: Apache-2.0
// Paddle's matrix non-maximum suppression: all pairs of boxes at once.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/rows_nms.h"

namespace quench::paddle {
namespace {

using Values = std::vector<ValueId>;

/// N images, C classes, M boxes, of which the best K of each class are looked at.
class MatrixNms {
 public:
  explicit MatrixNms(Op& op) : op_(op) {
    if (op.need_rank("Scores") != 3) {
      fail(ErrorKind::Unsupported, "its scores are not of images, classes and boxes");
    }
    scores_ = op.in("Scores");
    images_ = op.size_of(scores_, 0);
    classes_ = op.size_of(scores_, 1);
    count_ = op.size_of(scores_, 2);
  }

  void set() {
    const std::int64_t most = op_.integer("nms_top_k");
    const ValueId k = most < 0 ? count_ : op_.node("Min", {count_, op_.ints({most})});
    const auto best = op_.nodes("TopK", {scores_, k}, 2, {{"axis", std::int64_t{2}}});
    const ValueId first = op_.reshape(mul(range(images_), count_), {-1, 1, 1});
    const ValueId numbers = op_.node("Add", {best[1], first});
    const ValueId boxes = gather(op_.reshape(op_.in("BBoxes"), {-1, 4}), numbers);
    const ValueId decayed = mul(best[0], decay(boxes));
    choose(best[0], decayed, numbers, k);
  }

 private:
  ValueId number(double value) { return op_.scalar(value, DType::Float32); }
  ValueId whole(std::int64_t value) { return op_.constant(Tensor::scalar<std::int64_t>(value)); }
  ValueId mul(ValueId a, ValueId b) { return op_.node("Mul", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op_.node("Sub", {a, b}); }
  ValueId gather(ValueId from, ValueId index) {
    return op_.node("Gather", {from, index}, {{"axis", std::int64_t{0}}});
  }
  ValueId range(ValueId size) {
    return op_.node("Range", {whole(0), op_.reshape(size, {}), whole(1)});
  }
  /// Not below zero, and one more where sides count pixels.
  ValueId extent(ValueId from, ValueId to) {
    const ValueId size = sub(to, from);
    return op_.flag("normalized") ? size : op_.node("Add", {size, number(1)});
  }

  /// How much of each pair's area is of both, [N, C, K, K].
  ValueId overlaps(ValueId boxes) {
    const Values side =
        op_.nodes("Split", {boxes, op_.ints({1, 1, 1, 1})}, 4, {{"axis", std::int64_t{3}}});
    const auto other = [&](std::size_t i) { return op_.transpose(side[i], {0, 1, 3, 2}); };
    ValueId shared = kNoValue;
    ValueId apart = kNoValue;
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId low = op_.node("Max", {side[i], other(i)});
      const ValueId high = op_.node("Min", {side[i + 2], other(i + 2)});
      const ValueId none = op_.node("Less", {high, low});
      const ValueId size = extent(low, high);
      shared = shared == kNoValue ? size : mul(shared, size);
      apart = apart == kNoValue ? none : op_.node("Or", {apart, none});
    }
    const ValueId area = mul(extent(side[0], side[2]), extent(side[1], side[3]));
    const ValueId both = op_.node("Add", {area, op_.transpose(area, {0, 1, 3, 2})});
    const ValueId ratio = op_.node("Div", {shared, sub(both, shared)});
    return op_.node("Where", {apart, number(0), ratio});
  }

  /// What is left of each box's score: the least that any better box leaves.
  ValueId decay(ValueId boxes) {
    // Row i holds its overlap with the better boxes j < i; a row's greatest is how far box i itself
    // is covered.
    const ValueId pairs = overlaps(boxes);
    const ValueId places = range(op_.size_of(pairs, 3));
    const ValueId is_better =
        op_.node("Less", {op_.unsqueeze(places, {0}), op_.unsqueeze(places, {1})});
    const ValueId better = op_.node("Where", {is_better, pairs, number(0)});
    const ValueId covered = op_.transpose(op_.reduce("ReduceMax", better, {3}, true), {0, 1, 3, 2});
    ValueId left = kNoValue;
    if (op_.flag("use_gaussian")) {
      const ValueId change = sub(mul(covered, covered), mul(better, better));
      left = op_.node("Exp", {mul(change, number(op_.real("gaussian_sigma")))});
    } else {
      left = op_.node("Div", {sub(number(1), better), sub(number(1), covered)});
    }
    // 0 / 0 leaves all, and so does every box that is no better one.
    const ValueId counts =
        op_.node("And", {is_better, op_.node("Not", {op_.node("IsNaN", {left})})});
    const ValueId share = op_.node("Where", {counts, left, number(1)});
    return op_.reduce("ReduceMin", op_.node("Min", {share, number(1)}), {3}, false);
  }

  /// Which may stay: [N, C, K].
  ValueId good(ValueId scores, ValueId decayed) {
    const ValueId high = op_.node("Greater", {scores, number(op_.real("score_threshold"))});
    const ValueId left = op_.node("Greater", {decayed, number(op_.real("post_threshold"))});
    ValueId both = op_.node("And", {high, left});
    const std::int64_t background = op_.integer("background_label");
    if (background < 0) return both;
    const ValueId other = op_.node(
        "Not", {op_.node("Equal", {op_.reshape(range(classes_), {-1, 1}), whole(background)})});
    return op_.node("And", {both, other});
  }

  /// The best of each image, in the order of their scores.
  void choose(ValueId scores, ValueId decayed, ValueId numbers, ValueId k) {
    const ValueId none = number(-1);
    const ValueId rated = op_.node("Where", {good(scores, decayed), decayed, none});
    const ValueId rows = op_.reshape(rated, {0, -1});
    const ValueId all = op_.size_of(rows, 1);
    const std::int64_t most = op_.integer("keep_top_k");
    const ValueId kept = most < 0 ? all : op_.node("Min", {all, op_.ints({most})});
    const auto best = op_.nodes("TopK", {rows, kept}, 2, {{"axis", std::int64_t{1}}});
    const ValueId first = op_.reshape(mul(range(images_), all), {-1, 1});
    const ValueId flat = op_.reshape(op_.node("Add", {best[1], first}), {-1});
    const ValueId stays = op_.node("Greater", {best[0], none});
    const ValueId places = op_.node("Compress", {flat, op_.reshape(stays, {-1})});
    give(places, rated, numbers, k);
    if (!op_.makes("RoisNum")) return;
    const ValueId sum = op_.reduce("ReduceSum", op_.cast(stays, DType::Int64), {1}, false);
    op_.set("RoisNum", op_.cast(sum, DType::Int32));
  }

  void give(ValueId places, ValueId rated, ValueId numbers, ValueId k) {
    const ValueId group = op_.node("Div", {places, k});
    const ValueId label = op_.node("Mod", {group, classes_});
    const auto upright = [&](ValueId value) { return op_.unsqueeze(value, {1}); };
    const ValueId box = gather(op_.reshape(numbers, {-1}), places);
    op_.set("Out", op_.node("Concat",
                            {upright(op_.cast(label, DType::Float32)),
                             upright(gather(op_.reshape(rated, {-1}), places)),
                             gather(op_.reshape(op_.in("BBoxes"), {-1, 4}), box)},
                            {{"axis", std::int64_t{1}}}));
    if (op_.makes("Index")) op_.set("Index", upright(op_.cast(box, DType::Int32)));
  }

  Op& op_;
  ValueId scores_ = kNoValue, images_ = kNoValue, classes_ = kNoValue, count_ = kNoValue;
};

}  // namespace

void read_matrix_nms(Op& op) { MatrixNms(op).set(); }

}  // namespace quench::paddle
