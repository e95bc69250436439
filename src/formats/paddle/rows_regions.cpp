// SPDX-License-Identifier: Apache-2.0
// What detectors of two stages need: regions that are proposed, dealt out to levels of a pyramid
// and cut out of its maps.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Values = std::vector<ValueId>;

ValueId number(Op& op, double value) { return op.scalar(value, DType::Float32); }
ValueId int_scalar(Op& op, std::int64_t value) {
  return op.constant(Tensor::scalar<std::int64_t>(value));
}
ValueId add(Op& op, ValueId a, ValueId b) { return op.node("Add", {a, b}); }
ValueId sub(Op& op, ValueId a, ValueId b) { return op.node("Sub", {a, b}); }
ValueId mul(Op& op, ValueId a, ValueId b) { return op.node("Mul", {a, b}); }
ValueId concat(Op& op, Values parts, std::int64_t axis) {
  return op.node("Concat", std::move(parts), {{"axis", axis}});
}
ValueId gather(Op& op, ValueId from, ValueId index) {
  return op.node("Gather", {from, index}, {{"axis", std::int64_t{0}}});
}
/// 0, 1, ... of a size that is a vector of one.
ValueId counted(Op& op, ValueId size) {
  return op.node("Range", {int_scalar(op, 0), op.reshape(size, {}), int_scalar(op, 1)});
}

/// The image of each region: how many counts of regions, summed up, it has passed.
ValueId images_of(Op& op, ValueId regions, ValueId counts) {
  const ValueId size = op.size_of(regions, 0);
  if (counts == kNoValue) {
    return op.node("ConstantOfShape", {size},
                   {{"value", Tensor::of<std::int64_t>({1}, {std::int64_t{0}})}});
  }
  const ValueId ends = op.node("CumSum", {op.cast(counts, DType::Int64), int_scalar(op, 0)});
  const ValueId passed =
      op.node("LessOrEqual", {op.unsqueeze(ends, {1}), op.unsqueeze(counted(op, size), {0})});
  return op.reduce("ReduceSum", op.cast(passed, DType::Int64), {0}, false);
}

/// Ones where a region is of an image: [regions, images].
ValueId membership(Op& op, ValueId images, ValueId number_of_images) {
  const ValueId same = op.node(
      "Equal", {op.unsqueeze(images, {1}), op.unsqueeze(counted(op, number_of_images), {0})});
  return op.cast(same, DType::Int64);
}

/// The order in which int64 keys rise.
ValueId rising(Op& op, ValueId keys) {
  return op.nodes("TopK", {keys, op.size_of(keys, 0)}, 2,
                  {{"axis", std::int64_t{0}}, {"largest", std::int64_t{0}}})[1];
}

void read_roi_align(Op& op) {
  const ValueId rois = op.in("ROIs");
  const bool aligned = op.flag("aligned");
  const std::int64_t ratio = op.integer("sampling_ratio");
  op.set("Out",
         op.node("RoiAlign", {op.in("X"), rois, images_of(op, rois, op.in_or_none("RoisNum"))},
                 {{"mode", std::string("avg")},
                  {"output_height", op.integer("pooled_height")},
                  {"output_width", op.integer("pooled_width")},
                  {"sampling_ratio", std::max<std::int64_t>(ratio, 0)},
                  {"spatial_scale", static_cast<float>(op.real("spatial_scale"))},
                  {"coordinate_transformation_mode",
                   std::string(aligned ? "half_pixel" : "output_half_pixel")}}));
}

/// ONNX has the image of a region as the first of its five numbers.
void read_roi_pool(Op& op) {
  const ValueId rois = op.in("ROIs");
  const ValueId images = images_of(op, rois, op.in_or_none("RoisNum"));
  const ValueId rows = concat(op, {op.unsqueeze(op.cast(images, op.dtype("ROIs")), {1}), rois}, 1);
  op.set("Out", op.node("MaxRoiPool", {op.in("X"), rows},
                        {{"pooled_shape", std::vector<std::int64_t>{op.integer("pooled_height"),
                                                                    op.integer("pooled_width")}},
                         {"spatial_scale", static_cast<float>(op.real("spatial_scale"))}}));
}

/// The four numbers of boxes, which lie in the last dimension.
Values sides(Op& op, ValueId boxes) {
  return op.nodes("Split", {boxes, op.ints({1, 1, 1, 1})}, 4, {{"axis", std::int64_t{-1}}});
}

/// Sizes of boxes whose last pixel may count.
std::array<ValueId, 2> extents(Op& op, const Values& side, double last) {
  const auto extent = [&](ValueId from, ValueId to) {
    const ValueId size = sub(op, to, from);
    return last == 0 ? size : add(op, size, number(op, last));
  };
  return {extent(side[0], side[2]), extent(side[1], side[3])};
}

/// What a network proposes in one map: anchors that it moves, without those that overlap better
/// ones.
class Proposals {
 public:
  explicit Proposals(Op& op) : op_(op), last_(op.flag("pixel_offset") ? 1 : 0) {
    if (op.real("eta") != 1) fail(ErrorKind::Unsupported, "its threshold changes (eta)");
  }

  void set() {
    const ValueId scores = rows(op_.in("Scores"), 1);
    const std::int64_t most = op_.integer("pre_nms_topN");
    const ValueId all = op_.size_of(scores, 1);
    const ValueId k = most <= 0 ? all : op_.node("Min", {all, op_.ints({most})});
    const auto best =
        op_.nodes("TopK", {op_.squeeze(scores, {2}), k}, 2, {{"axis", std::int64_t{1}}});
    const ValueId boxes = clipped(decoded(best[1]));
    const ValueId kept = suppressed(boxes, k);
    const ValueId image = op_.squeeze(op_.slice(kept, 1, 0, 1), {1});
    const ValueId place = op_.squeeze(op_.slice(kept, 1, 2, 3), {1});
    const ValueId flat = add(op_, mul(op_, image, k), place);
    op_.set("RpnRois", gather(op_, op_.reshape(boxes, {-1, 4}), flat));
    op_.set("RpnRoiProbs", gather(op_, op_.reshape(best[0], {-1, 1}), flat));
    if (!op_.makes("RpnRoisNum")) return;
    const ValueId members = membership(op_, image, op_.size_of(scores, 0));
    op_.set("RpnRoisNum", op_.cast(op_.reduce("ReduceSum", members, {0}, false), DType::Int32));
  }

 private:
  /// Maps [N, A * n, H, W] as rows [N, H * W * A, n].
  ValueId rows(ValueId maps, std::int64_t numbers) {
    const ValueId last = op_.transpose(maps, {0, 2, 3, 1});
    return op_.reshape(last, {0, -1, numbers});
  }

  /// Rows of anchors or deltas that scores chose, [N, K, 4].
  ValueId chosen(ValueId of_image, ValueId index) {
    const ValueId wide = op_.node("Expand", {op_.unsqueeze(index, {2}), op_.ints({1, 1, 4})});
    return op_.node("GatherElements", {of_image, wide}, {{"axis", std::int64_t{1}}});
  }
  ValueId of_anchor(std::string_view input, ValueId index) {
    return gather(op_, op_.reshape(op_.in(input), {-1, 4}), index);
  }

  ValueId decoded(ValueId index) {
    const Values anchor = sides(op_, of_anchor("Anchors", index));
    ValueId deltas = chosen(rows(op_.in("BboxDeltas"), 4), index);
    if (op_.has("Variances")) deltas = mul(op_, deltas, of_anchor("Variances", index));
    const Values delta = sides(op_, deltas);
    const auto size = extents(op_, anchor, last_);
    const ValueId half = number(op_, 0.5);
    Values low, high;
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId middle = add(op_, anchor[i], mul(op_, size[i], half));
      const ValueId centre = add(op_, mul(op_, delta[i], size[i]), middle);
      // Paddle holds sizes to a thousand pixels of a map that is 16 times smaller.
      const ValueId wide = op_.node("Min", {delta[i + 2], number(op_, std::log(1000.0 / 16.0))});
      const ValueId reach = mul(op_, mul(op_, op_.node("Exp", {wide}), size[i]), half);
      low.push_back(sub(op_, centre, reach));
      const ValueId end = add(op_, centre, reach);
      high.push_back(last_ == 0 ? end : sub(op_, end, number(op_, last_)));
    }
    return concat(op_, {low[0], low[1], high[0], high[1]}, -1);
  }

  /// Width or height of each image, [N, 1, 1].
  ValueId image_size(std::int64_t axis) {
    const ValueId sizes = op_.cast(op_.in("ImShape"), DType::Float32);
    return op_.reshape(op_.slice(sizes, 1, axis, axis + 1), {-1, 1, 1});
  }

  ValueId clipped(ValueId boxes) {
    const Values side = sides(op_, boxes);
    Values inside;
    for (std::size_t i = 0; i < 4; ++i) {
      ValueId most = image_size(i % 2 == 0 ? 1 : 0);
      if (last_ != 0) most = sub(op_, most, number(op_, last_));
      const ValueId below = op_.node("Min", {side[i], most});
      inside.push_back(op_.node("Max", {below, number(op_, 0)}));
    }
    return concat(op_, inside, -1);
  }

  /// Boxes that are large enough: [N, K].
  ValueId large(ValueId boxes) {
    const Values side = sides(op_, boxes);
    const auto size = extents(op_, side, last_);
    const ValueId least = number(op_, std::max(op_.real("min_size"), 1.0));
    ValueId good = kNoValue;
    const auto also = [&](ValueId holds) {
      good = good == kNoValue ? holds : op_.node("And", {good, holds});
    };
    for (std::size_t i = 0; i < 2; ++i) {
      also(op_.node("GreaterOrEqual", {size[i], least}));
      if (last_ == 0) continue;
      const ValueId centre = add(op_, side[i], mul(op_, size[i], number(op_, 0.5)));
      also(op_.node("LessOrEqual", {centre, image_size(i == 0 ? 1 : 0)}));
    }
    return op_.squeeze(good, {2});
  }

  /// Image, class and place of those that stay, by image and score.
  ValueId suppressed(ValueId boxes, ValueId count) {
    // They lie in the order of their scores: any that fall will do, and 0 is none.
    const ValueId falling =
        op_.node("Range", {op_.reshape(count, {}), int_scalar(op_, 0), int_scalar(op_, -1)});
    const ValueId scores =
        op_.node("Where", {large(boxes), op_.cast(falling, DType::Float32), number(op_, 0)});
    ValueId counted_boxes = boxes;
    if (last_ != 0) {
      const Tensor last = Tensor::of<float>({4}, {0.0F, 0.0F, 1.0F, 1.0F});
      counted_boxes = add(op_, boxes, op_.constant(last));
    }
    const std::int64_t most = op_.integer("post_nms_topN");
    const auto vector = [&](double value) {
      return op_.constant(Tensor::of<float>({1}, {static_cast<float>(value)}));
    };
    return op_.node("NonMaxSuppression",
                    {counted_boxes, op_.unsqueeze(scores, {1}), most > 0 ? op_.ints({most}) : count,
                     vector(op_.real("nms_thresh")), vector(0)});
  }

  Op& op_;
  double last_;
};

void read_generate_proposals(Op& op) { Proposals(op).set(); }

/// The level of a pyramid that fits each region's size.
ValueId levels_of(Op& op, ValueId rois, std::int64_t least, std::int64_t most) {
  const double last = op.flag("pixel_offset") ? 1 : 0;
  const Values side = sides(op, rois);
  const auto size = extents(op, side, last);
  const auto turned = [&](std::size_t from, std::size_t to) {
    return op.node("Less", {side[to], side[from]});
  };
  const ValueId area = op.node("Where", {op.node("Or", {turned(0, 2), turned(1, 3)}), number(op, 0),
                                         mul(op, size[0], size[1])});
  const double refer = op.real("refer_scale");
  if (!(refer > 0)) fail(ErrorKind::BadModel, "its refer_scale is {}", refer);
  const ValueId share =
      add(op, op.node("Div", {op.node("Sqrt", {area}), number(op, refer)}), number(op, 1e-6));
  const ValueId log2 = op.node("Div", {op.node("Log", {share}), number(op, std::log(2.0))});
  const ValueId level =
      op.node("Floor", {add(op, log2, number(op, static_cast<double>(op.integer("refer_level"))))});
  const ValueId held = op.node("Clip", {level, number(op, static_cast<double>(least)),
                                        number(op, static_cast<double>(most))});
  return op.cast(op.reshape(held, {-1}), DType::Int64);
}

void read_distribute(Op& op) {
  const ValueId rois = op.in("FpnRois");
  const std::int64_t least = op.integer("min_level");
  const std::int64_t most = op.integer("max_level");
  constexpr std::int64_t kMostLevels = 64;
  const auto count = static_cast<std::int64_t>(op.num_outputs("MultiFpnRois"));
  if (count > kMostLevels || least < -kMostLevels || least > kMostLevels ||
      most != least + count - 1) {
    fail(ErrorKind::BadModel, "it deals to levels {} to {} and gives {}", least, most, count);
  }
  const ValueId level = levels_of(op, rois, least, most);
  const bool counts = op.has("RoisNum") && op.makes("MultiLevelRoIsNum");
  const ValueId members = counts ? membership(op, images_of(op, rois, op.in("RoisNum")),
                                              op.size_of(op.in("RoisNum"), 0))
                                 : kNoValue;
  Values order;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const ValueId here = op.node("Equal", {level, int_scalar(op, least + i)});
    order.push_back(op.reshape(op.node("NonZero", {here}), {-1}));
    op.set("MultiFpnRois", gather(op, rois, order.back()), at);
    if (!counts) continue;
    const ValueId mask = op.unsqueeze(op.cast(here, DType::Int64), {1});
    const ValueId sum = op.reduce("ReduceSum", mul(op, members, mask), {0}, false);
    op.set("MultiLevelRoIsNum", op.cast(sum, DType::Int32), at);
  }
  const ValueId restore = rising(op, concat(op, order, 0));
  op.set("RestoreIndex", op.unsqueeze(op.cast(restore, DType::Int32), {1}));
}

/// The best regions of all levels, by image and score.
void read_collect(Op& op) {
  const Values rois = op.ins("MultiLevelRois");
  const Values scores = op.ins("MultiLevelScores");
  const Values counts = op.ins("MultiLevelRoIsNum");
  if (rois.empty() || rois.size() != scores.size() || rois.size() != counts.size()) {
    fail(ErrorKind::Unsupported,
         "its levels do not each have regions, scores and numbers of regions");
  }
  Values images;
  Values rows;
  for (std::size_t i = 0; i < rois.size(); ++i) {
    images.push_back(images_of(op, rois[i], counts[i]));
    rows.push_back(op.reshape(scores[i], {-1}));
  }
  const ValueId score = concat(op, rows, 0);
  const ValueId k = op.node("Min", {op.size_of(score, 0), op.ints({op.integer("post_nms_topN")})});
  const ValueId best = op.nodes("TopK", {score, k}, 2, {{"axis", std::int64_t{0}}})[1];
  const ValueId image = gather(op, concat(op, images, 0), best);
  const ValueId order = rising(op, add(op, mul(op, image, k), counted(op, k)));
  op.set("FpnRois", gather(op, gather(op, concat(op, rois, 0), best), order));
  const ValueId members = membership(op, image, op.size_of(counts[0], 0));
  op.set("RoisNum", op.cast(op.reduce("ReduceSum", members, {0}, false), DType::Int32));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"roi_align", "", "X ROIs RoisNum", "Out",
     "pooled_height=1 pooled_width=1 spatial_scale=1 sampling_ratio=-1 aligned=false",
     read_roi_align, 16},
    {"roi_pool", "", "X ROIs RoisNum", "Out Argmax",
     "pooled_height=1 pooled_width=1 spatial_scale=1", read_roi_pool},
    {"generate_proposals_v2", "generate_proposals", "Scores BboxDeltas ImShape Anchors Variances",
     "RpnRois RpnRoiProbs RpnRoisNum",
     "pre_nms_topN|pre_nms_top_n=6000 post_nms_topN|post_nms_top_n=1000 nms_thresh=0.5 "
     "min_size=0.1 eta=1 pixel_offset=true",
     read_generate_proposals},
    {"distribute_fpn_proposals", "", "FpnRois RoisNum",
     "MultiFpnRois MultiLevelRoIsNum RestoreIndex",
     "min_level max_level refer_level refer_scale pixel_offset=true", read_distribute},
    {"collect_fpn_proposals", "", "MultiLevelRois MultiLevelScores MultiLevelRoIsNum",
     "FpnRois RoisNum", "post_nms_topN|post_nms_topn", read_collect},
});

}  // namespace

std::span<const OpRow> region_rows() { return kRows; }

}  // namespace quench::paddle
