// SPDX-License-Identifier: Apache-2.0
// SSD's layers: prior boxes, and detections out of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"
#include "formats/suppression.h"

namespace quench::caffe {
namespace {

/// Width and height of one box, in pixels.
struct BoxSize {
  double w, h;
};

/// The ratios that are given, with their inverses, each once; 1 is always the first.
std::vector<double> ratios_of(const PriorBoxParameter& given) {
  constexpr double kSame = 1e-6;
  std::vector<double> ratios{1};
  for (const float ratio : given.aspect_ratio()) {
    if (!(ratio > 0)) fail(ErrorKind::BadModel, "it has an aspect ratio of {}", ratio);
    const bool known =
        std::ranges::any_of(ratios, [&](double each) { return std::abs(each - ratio) < kSame; });
    if (known) continue;
    ratios.push_back(ratio);
    if (given.flip()) ratios.push_back(1.0 / ratio);
  }
  return ratios;
}

std::vector<BoxSize> sizes_of(const PriorBoxParameter& given) {
  if (given.min_size_size() == 0) fail(ErrorKind::BadModel, "it has no min_size");
  if (given.max_size_size() > 0 && given.max_size_size() != given.min_size_size()) {
    fail(ErrorKind::BadModel, "it has {} sizes and {} greatest ones", given.min_size_size(),
         given.max_size_size());
  }
  std::vector<BoxSize> sizes;
  const std::vector<double> ratios = ratios_of(given);
  for (int i = 0; i < given.min_size_size(); ++i) {
    const double least = given.min_size(i);
    sizes.push_back({least, least});
    if (given.max_size_size() > 0) {
      const double between = std::sqrt(least * given.max_size(i));
      sizes.push_back({between, between});
    }
    for (std::size_t r = 1; r < ratios.size(); ++r) {
      sizes.push_back({least * std::sqrt(ratios[r]), least / std::sqrt(ratios[r])});
    }
  }
  return sizes;
}

struct Cells {
  double image_w, image_h, step_w, step_h;
};

Cells steps_of(const Layer& layer, const PriorBoxParameter& given) {
  const bool image = given.has_img_size() || given.has_img_h();
  Cells layout{};
  layout.image_h = given.has_img_size() ? given.img_size() : given.img_h();
  layout.image_w = given.has_img_size() ? given.img_size() : given.img_w();
  if (!image) {
    layer.expect_image(1);
    layout.image_h = static_cast<double>(layer.dim(2, 1));
    layout.image_w = static_cast<double>(layer.dim(3, 1));
  }
  layout.step_h = given.has_step() ? given.step() : given.step_h();
  layout.step_w = given.has_step() ? given.step() : given.step_w();
  if (layout.step_h == 0) layout.step_h = layout.image_h / static_cast<double>(layer.dim(2));
  if (layout.step_w == 0) layout.step_w = layout.image_w / static_cast<double>(layer.dim(3));
  return layout;
}

std::array<float, 4> variances_of(const PriorBoxParameter& given) {
  std::array<float, 4> result{0.1F, 0.1F, 0.1F, 0.1F};
  if (given.variance_size() == 1) result.fill(given.variance(0));
  if (given.variance_size() > 1 && given.variance_size() != 4) {
    fail(ErrorKind::BadModel, "it has {} variances; one or four are right", given.variance_size());
  }
  if (given.variance_size() == 4) std::ranges::copy(given.variance(), result.begin());
  return result;
}

/// A constant: boxes in the first row, their variances in the second.
void read_prior_box(Layer& layer) {
  layer.expect_image();
  const PriorBoxParameter& given = layer.parameter().prior_box_param();
  const std::vector<BoxSize> sizes = sizes_of(given);
  const Cells layout = steps_of(layer, given);
  constexpr std::int64_t kMost = 1 << 22;
  const std::int64_t cells = count_of({layer.dim(2), layer.dim(3)});
  if (cells > kMost / std::ssize(sizes)) fail(ErrorKind::BadModel, "it makes too many boxes");
  const auto count = static_cast<std::size_t>(cells) * sizes.size() * 4;
  std::vector<float> numbers;
  numbers.reserve(2 * count);
  for (std::int64_t y = 0; y < layer.dim(2); ++y) {
    for (std::int64_t x = 0; x < layer.dim(3); ++x) {
      const double cx = (static_cast<double>(x) + given.offset()) * layout.step_w;
      const double cy = (static_cast<double>(y) + given.offset()) * layout.step_h;
      for (const BoxSize& size : sizes) {
        for (double side :
             {(cx - size.w / 2) / layout.image_w, (cy - size.h / 2) / layout.image_h,
              (cx + size.w / 2) / layout.image_w, (cy + size.h / 2) / layout.image_h}) {
          if (given.clip()) side = std::clamp(side, 0.0, 1.0);
          numbers.push_back(static_cast<float>(side));
        }
      }
    }
  }
  const std::array<float, 4> variances = variances_of(given);
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(variances[i % 4]);
  const Shape shape{1, 2, static_cast<std::int64_t>(count)};
  layer.set(layer.make().constant(Tensor::of<float>(shape, std::span<const float>(numbers))),
            shape);
}

/// Arithmetic on the four numbers of boxes, each [n, boxes, 1].
class Boxes {
 public:
  Boxes(GraphMaker& make, const DetectionOutputParameter& given) : make_(make), given_(given) {}

  /// Corners out of what the network says of each prior box.
  ValueId decode(ValueId location, ValueId priors) {
    const ValueId boxes = make_.reshape(make_.slice(priors, 1, 0, 1), {1, -1, 4});
    const ValueId spread = make_.reshape(make_.slice(priors, 1, 1, 2), {1, -1, 4});
    ValueId moved = make_.reshape(location, {0, -1, 4});
    if (!given_.variance_encoded_in_target()) moved = make_.node("Mul", {moved, spread});
    if (given_.code_type() == PriorBoxParameter::CORNER) return make_.node("Add", {boxes, moved});
    const auto p = parts(boxes);
    const auto d = parts(moved);
    const ValueId w = sub(p[2], p[0]), h = sub(p[3], p[1]);
    const ValueId cx = add(half(add(p[0], p[2])), mul(d[0], w));
    const ValueId cy = add(half(add(p[1], p[3])), mul(d[1], h));
    const ValueId half_w = half(mul(make_.node("Exp", {d[2]}), w));
    const ValueId half_h = half(mul(make_.node("Exp", {d[3]}), h));
    return make_.node("Concat",
                      {sub(cx, half_w), sub(cy, half_h), add(cx, half_w), add(cy, half_h)},
                      {{"axis", std::int64_t{2}}});
  }

 private:
  std::vector<ValueId> parts(ValueId boxes) {
    return make_.nodes("Split", {boxes, make_.ints({1, 1, 1, 1})}, 4, {{"axis", std::int64_t{2}}});
  }
  ValueId add(ValueId a, ValueId b) { return make_.node("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return make_.node("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return make_.node("Mul", {a, b}); }
  ValueId half(ValueId a) { return make_.node("Mul", {a, make_.scalar(0.5)}); }

  GraphMaker& make_;
  const DetectionOutputParameter& given_;
};

void read_detection_output(Layer& layer) {
  const DetectionOutputParameter& given = layer.parameter().detection_output_param();
  if (!given.share_location() || given.code_type() == PriorBoxParameter::CORNER_SIZE ||
      given.nms_param().eta() != 1) {
    fail(ErrorKind::Unsupported,
         "it is read with one location for all classes, corners or centres, and one threshold");
  }
  if (given.num_classes() == 0) fail(ErrorKind::BadModel, "it does not say num_classes");
  GraphMaker& make = layer.make();
  const ValueId boxes = Boxes(make, given).decode(layer.in(0), layer.in(2));
  const ValueId confidence = make.reshape(layer.in(1), {0, -1, given.num_classes()});
  const ValueId scores = make.transpose(confidence, {0, 2, 1});
  const SuppressionSettings how{
      .background = given.background_label_id(),
      .candidates = given.nms_param().top_k() > 0 ? given.nms_param().top_k() : -1,
      .most = given.keep_top_k(),
      .overlap = given.nms_param().nms_threshold(),
      .score = given.confidence_threshold(),
      .pixels = false};
  const Suppressed left = Suppression(make, boxes, scores, how).run();
  const ValueId rows = make.node("Concat",
                                 {make.cast(left.image, DType::Float32),
                                  make.cast(left.label, DType::Float32), left.score, left.box},
                                 {{"axis", std::int64_t{1}}});
  layer.set(make.unsqueeze(rows, {0, 1}), {1, 1, std::max(0, given.keep_top_k()), 7});
}

constexpr auto kRows = std::to_array<LayerRow>({
    {"PriorBox", read_prior_box},
    {"DetectionOutput", read_detection_output},
});

}  // namespace

std::span<const LayerRow> detection_rows() { return kRows; }

}  // namespace quench::caffe
