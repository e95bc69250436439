// SPDX-License-Identifier: Apache-2.0
// Paddle's boxes: what detection heads make of feature maps, in standard operators.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/rows_nms.h"

namespace quench::paddle {
namespace {

ValueId number(Op& op, double value) { return op.scalar(value, DType::Float32); }
ValueId add(Op& op, ValueId a, ValueId b) { return op.node("Add", {a, b}); }
ValueId sub(Op& op, ValueId a, ValueId b) { return op.node("Sub", {a, b}); }
ValueId mul(Op& op, ValueId a, ValueId b) { return op.node("Mul", {a, b}); }
ValueId div(Op& op, ValueId a, ValueId b) { return op.node("Div", {a, b}); }
ValueId concat(Op& op, std::vector<ValueId> parts, std::int64_t axis) {
  return op.node("Concat", std::move(parts), {{"axis", axis}});
}
ValueId floats(Op& op, ValueId value) { return op.cast(value, DType::Float32); }

/// 0, 1, ... of a size that is a vector of one.
ValueId counted(Op& op, ValueId size) {
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId one = op.constant(Tensor::scalar<std::int64_t>(1));
  return floats(op, op.node("Range", {zero, op.reshape(size, {}), one}));
}

/// One of the two coordinates of boxes: centre and half of the size.
struct Extent {
  ValueId centre, half;
};

/// What the heads of YOLO say, in maps [N, anchors, channels, H, W].
class YoloBoxes {
 public:
  explicit YoloBoxes(Op& op) : op_(op), x_(op.in("X")) {
    const std::vector<std::int64_t> given = op.integers("anchors");
    anchors_ = std::ssize(given) / 2;
    if (anchors_ == 0) fail(ErrorKind::BadModel, "it has no anchors");
    height_ = op.size_of(x_, 2);
    width_ = op.size_of(x_, 3);
    ValueId maps = x_;
    if (op.flag("iou_aware")) {
      overlap_ = spread(op.slice(x_, 1, 0, anchors_), 1);
      maps = op.slice(x_, 1, anchors_, kEnd);
    }
    parts_ = op.nodes("Split",
                      {spread(maps, 5 + op.integer("class_num")),
                       op.ints({1, 1, 1, 1, 1, op.integer("class_num")})},
                      6, {{"axis", std::int64_t{2}}});
  }

  void set() {
    const ValueId sure = confidence();
    const ValueId low = op_.node("Less", {sure, number(op_, op_.real("conf_thresh"))});
    const ValueId mask = floats(op_, op_.node("Not", {low}));
    const ValueId sizes = floats(op_, op_.in("ImgSize"));
    const ValueId image_h = op_.reshape(op_.slice(sizes, 1, 0, 1), {-1, 1, 1, 1, 1});
    const ValueId image_w = op_.reshape(op_.slice(sizes, 1, 1, 2), {-1, 1, 1, 1, 1});
    const ValueId rows = op_.reshape(counted(op_, height_), {-1, 1});
    const Extent x = extent(0, counted(op_, width_), width_, image_w);
    const Extent y = extent(1, rows, height_, image_h);
    ValueId x1 = sub(op_, x.centre, x.half);
    ValueId y1 = sub(op_, y.centre, y.half);
    ValueId x2 = add(op_, x.centre, x.half);
    ValueId y2 = add(op_, y.centre, y.half);
    if (op_.flag("clip_bbox")) {
      x1 = op_.node("Max", {x1, number(op_, 0)});
      y1 = op_.node("Max", {y1, number(op_, 0)});
      x2 = op_.node("Min", {x2, sub(op_, image_w, number(op_, 1))});
      y2 = op_.node("Min", {y2, sub(op_, image_h, number(op_, 1))});
    }
    op_.set("Boxes", listed(mul(op_, concat(op_, {x1, y1, x2, y2}, 2), mask), 4));
    const ValueId scores = mul(op_, op_.node("Sigmoid", {parts_[5]}), mul(op_, sure, mask));
    op_.set("Scores", listed(scores, op_.integer("class_num")));
  }

 private:
  ValueId spread(ValueId maps, std::int64_t channels) {
    const ValueId shape =
        concat(op_, {op_.size_of(x_, 0), op_.ints({anchors_, channels}), height_, width_}, 0);
    return op_.node("Reshape", {maps, shape});
  }

  ValueId confidence() {
    const ValueId object = op_.node("Sigmoid", {parts_[4]});
    if (overlap_ == kNoValue) return object;
    const double factor = op_.real("iou_aware_factor");
    return mul(op_, op_.node("Pow", {object, number(op_, 1 - factor)}),
               op_.node("Pow", {op_.node("Sigmoid", {overlap_}), number(op_, factor)}));
  }

  /// `at` is 0 for x and 1 for y.
  Extent extent(std::size_t at, ValueId cells, ValueId count, ValueId image) {
    const double scale = op_.real("scale_x_y");
    const ValueId inside = add(op_, mul(op_, op_.node("Sigmoid", {parts_[at]}), number(op_, scale)),
                               number(op_, -0.5 * (scale - 1)));
    const ValueId cell = div(op_, image, floats(op_, count));
    std::vector<float> sizes;
    const std::vector<std::int64_t> given = op_.integers("anchors");
    const auto downsample = static_cast<float>(op_.integer("downsample_ratio"));
    for (std::size_t i = at; i < given.size(); i += 2) {
      sizes.push_back(static_cast<float>(given[i]) / downsample / 2);
    }
    const ValueId anchors =
        op_.constant(Tensor::of<float>({1, anchors_, 1, 1, 1}, std::span<const float>(sizes)));
    return {mul(op_, add(op_, inside, cells), cell),
            mul(op_, mul(op_, op_.node("Exp", {parts_[at + 2]}), anchors), cell)};
  }

  ValueId listed(ValueId maps, std::int64_t channels) {
    const ValueId last = op_.transpose(maps, {0, 1, 3, 4, 2});
    return op_.reshape(last, {0, -1, channels});
  }

  Op& op_;
  ValueId x_;
  ValueId height_ = kNoValue, width_ = kNoValue, overlap_ = kNoValue;
  std::int64_t anchors_ = 0;
  std::vector<ValueId> parts_;  ///< x, y, w, h, object, classes
};

void read_yolo_box(Op& op) { YoloBoxes(op).set(); }

/// Half sizes of the boxes at each place of a map.
std::vector<std::pair<double, double>> prior_sizes(Op& op) {
  std::vector<double> ratios{1};
  for (const double ratio : op.reals("aspect_ratios")) {
    const auto near = [&](double other) { return std::abs(ratio - other) < 1e-6; };
    if (ratio <= 0 || std::ranges::any_of(ratios, near)) continue;
    ratios.push_back(ratio);
    if (op.flag("flip")) ratios.push_back(1 / ratio);
  }
  const std::vector<double> least = op.reals("min_sizes");
  const std::vector<double> most = op.reals("max_sizes");
  std::vector<std::pair<double, double>> sizes;
  for (std::size_t i = 0; i < least.size(); ++i) {
    const auto add_ratios = [&](bool with_one) {
      for (const double ratio : ratios) {
        if (!with_one && std::abs(ratio - 1) < 1e-6) continue;
        sizes.emplace_back(least[i] * std::sqrt(ratio) / 2, least[i] / std::sqrt(ratio) / 2);
      }
    };
    const auto add_square = [&](double side) { sizes.emplace_back(side / 2, side / 2); };
    const bool first = op.flag("min_max_aspect_ratios_order");
    if (first) add_square(least[i]);
    if (!first) add_ratios(true);
    if (i < most.size()) add_square(std::sqrt(least[i] * most[i]));
    if (first) add_ratios(false);
  }
  return sizes;
}

/// Boxes around every place of a map: constants, for the sizes are known.
void read_prior_box(Op& op) {
  const auto map = op.shape("Input").value_or(Shape());
  const auto image = op.shape("Image").value_or(Shape());
  const bool known = map.size() == 4 && image.size() == 4 && map[2] > 0 && map[3] > 0 &&
                     image[2] > 0 && image[3] > 0;
  constexpr std::int64_t kMost = 1 << 20;
  const auto sizes = prior_sizes(op);
  if (!known || map[2] > kMost || map[3] > kMost ||
      map[2] * map[3] > kMost / std::max<std::int64_t>(1, std::ssize(sizes))) {
    fail(ErrorKind::Unsupported,
         "it is read only where the sizes of map and image are fixed; export the model so");
  }
  const std::vector<double> variances = op.reals("variances");
  if (variances.size() != 4) fail(ErrorKind::BadModel, "it does not have four variances");
  const auto width = static_cast<double>(image[3]);
  const auto height = static_cast<double>(image[2]);
  const double given_w = op.real("step_w");
  const double given_h = op.real("step_h");
  const double step_w = given_w == 0 ? width / static_cast<double>(map[3]) : given_w;
  const double step_h = given_h == 0 ? height / static_cast<double>(map[2]) : given_h;
  const double offset = op.real("offset");
  std::vector<float> boxes, spreads;
  for (std::int64_t y = 0; y < map[2]; ++y) {
    for (std::int64_t x = 0; x < map[3]; ++x) {
      const double cx = (static_cast<double>(x) + offset) * step_w;
      const double cy = (static_cast<double>(y) + offset) * step_h;
      for (const auto& [w, h] : sizes) {
        for (double side :
             {(cx - w) / width, (cy - h) / height, (cx + w) / width, (cy + h) / height}) {
          if (op.flag("clip")) side = std::clamp(side, 0.0, 1.0);
          boxes.push_back(static_cast<float>(side));
        }
        for (const double each : variances) spreads.push_back(static_cast<float>(each));
      }
    }
  }
  const Shape shape{map[2], map[3], std::ssize(sizes), 4};
  op.set("Boxes", op.constant(Tensor::of<float>(shape, std::span<const float>(boxes))));
  op.set("Variances", op.constant(Tensor::of<float>(shape, std::span<const float>(spreads))));
}

/// The four numbers of boxes, which lie in the last dimension.
std::vector<ValueId> sides(Op& op, ValueId boxes) {
  return op.nodes("Split", {boxes, op.ints({1, 1, 1, 1})}, 4, {{"axis", std::int64_t{-1}}});
}

struct Centres {
  ValueId x, y, w, h;
};

Centres centres(Op& op, ValueId boxes, double one) {
  const auto side = sides(op, boxes);
  const ValueId w = add(op, sub(op, side[2], side[0]), number(op, one));
  const ValueId h = add(op, sub(op, side[3], side[1]), number(op, one));
  return {add(op, side[0], mul(op, w, number(op, 0.5))),
          add(op, side[1], mul(op, h, number(op, 0.5))), w, h};
}

ValueId variances_of(Op& op, const std::vector<std::int64_t>& axes) {
  if (op.has("PriorBoxVar")) {
    const ValueId given = op.in("PriorBoxVar");
    return op.rank("PriorBoxVar") == 1 ? given : op.unsqueeze(given, axes);
  }
  const std::vector<double> given = op.reals("variance");
  std::vector<float> values(given.begin(), given.end());
  if (values.size() != 4) values.assign(4, 1.0F);
  return op.constant(Tensor::of<float>({4}, std::span<const float>(values)));
}

void decode(Op& op, double one) {
  const std::vector<std::int64_t> axes{op.integer("axis") == 0 ? 0 : 1};
  const Centres prior = centres(op, op.unsqueeze(op.in("PriorBox"), axes), one);
  const auto code = sides(op, mul(op, op.in("TargetBox"), variances_of(op, axes)));
  const ValueId x = add(op, mul(op, code[0], prior.w), prior.x);
  const ValueId y = add(op, mul(op, code[1], prior.h), prior.y);
  const ValueId half = number(op, 0.5);
  const ValueId w = mul(op, mul(op, op.node("Exp", {code[2]}), prior.w), half);
  const ValueId h = mul(op, mul(op, op.node("Exp", {code[3]}), prior.h), half);
  const ValueId last = number(op, one);
  op.set("OutputBox", concat(op,
                             {sub(op, x, w), sub(op, y, h), sub(op, add(op, x, w), last),
                              sub(op, add(op, y, h), last)},
                             -1));
}

void encode(Op& op, double one) {
  const Centres prior = centres(op, op.unsqueeze(op.in("PriorBox"), {0}), one);
  const ValueId target = op.unsqueeze(op.in("TargetBox"), {1});
  const auto side = sides(op, target);
  const Centres box = centres(op, target, one);
  const ValueId half = number(op, 0.5);
  const ValueId x = mul(op, add(op, side[0], side[2]), half);
  const ValueId y = mul(op, add(op, side[1], side[3]), half);
  const auto ratio = [&](ValueId a, ValueId b) {
    return op.node("Log", {op.node("Abs", {div(op, a, b)})});
  };
  const ValueId code =
      concat(op,
             {div(op, sub(op, x, prior.x), prior.w), div(op, sub(op, y, prior.y), prior.h),
              ratio(box.w, prior.w), ratio(box.h, prior.h)},
             -1);
  op.set("OutputBox", div(op, code, variances_of(op, {0})));
}

void read_box_coder(Op& op) {
  const double one = op.flag("box_normalized") ? 0 : 1;
  if (op.text("code_type") == "decode_center_size") {
    decode(op, one);
  } else {
    encode(op, one);
  }
}

/// Of boxes in the order of their scores: those that overlap no better one too much.
void read_nms(Op& op) {
  const ValueId boxes = op.in("Boxes");
  const ValueId count = op.size_of(boxes, 0);
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId step = op.constant(Tensor::scalar<std::int64_t>(-1));
  // Any scores that fall will do: as many as there are boxes, down to one.
  const ValueId falling = op.node("Range", {op.reshape(count, {}), zero, step});
  const ValueId scores = op.unsqueeze(op.cast(falling, DType::Float32), {0, 1});
  const ValueId kept = op.node(
      "NonMaxSuppression",
      {op.unsqueeze(boxes, {0}), scores, count,
       op.constant(Tensor::of<float>({1}, {static_cast<float>(op.real("iou_threshold"))}))});
  // ONNX lists image, class and box in the order of scores.
  op.set("KeepBoxesIdxs", op.squeeze(op.slice(kept, 1, 2, 3), {1}));
}

constexpr std::string_view kNmsAttributes =
    "score_threshold nms_top_k keep_top_k nms_threshold=0.3 normalized=true nms_eta=1 "
    "background_label=0";

constexpr auto kRows = std::to_array<OpRow>({
    {"yolo_box", "", "X ImgSize", "Boxes Scores",
     "anchors class_num conf_thresh downsample_ratio clip_bbox=true scale_x_y=1 iou_aware=false "
     "iou_aware_factor=0.5",
     read_yolo_box},
    {"prior_box", "", "Input Image", "Boxes Variances",
     "min_sizes max_sizes= aspect_ratios= variances=0.1,0.1,0.2,0.2 flip=true clip=true step_w=0 "
     "step_h=0 offset=0.5 min_max_aspect_ratios_order=false",
     read_prior_box},
    {"box_coder", "", "PriorBox PriorBoxVar TargetBox", "OutputBox",
     "code_type=encode_center_size box_normalized=true axis=0 variance=", read_box_coder},
    {"multiclass_nms3", "", "BBoxes Scores RoisNum", "Out Index NmsRoisNum", kNmsAttributes,
     read_multiclass_nms},
    {"multiclass_nms2", "-", "BBoxes Scores", "Out Index", kNmsAttributes, read_multiclass_nms},
    {"multiclass_nms", "-", "BBoxes Scores", "Out", kNmsAttributes, read_multiclass_nms},
    {"matrix_nms", "", "BBoxes Scores", "Out Index RoisNum",
     "score_threshold nms_top_k keep_top_k post_threshold use_gaussian=false gaussian_sigma=2 "
     "background_label=0 normalized=true",
     read_matrix_nms},
    {"nms", "", "Boxes", "KeepBoxesIdxs", "iou_threshold|threshold=1", read_nms},
});

}  // namespace

std::span<const OpRow> detection_rows() { return kRows; }

}  // namespace quench::paddle
