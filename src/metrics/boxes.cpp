// SPDX-License-Identifier: Apache-2.0
// Boxes of detection models, from the forms in which models give them.
#include "metrics/boxes.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

enum class Form { None, CornersFirst, ClassFirst, Centres, CentresTransposed };

constexpr std::int64_t kRow = 6;            ///< numbers of a box in rows
constexpr std::int64_t kFewestPlaces = 64;  ///< of a head without suppression
constexpr std::size_t kMostLooked = 256;    ///< rows that tell the form
constexpr std::size_t kMostBoxes = 1000;    ///< of a head, before suppression
constexpr double kSuppressed = 0.45;        ///< overlap from which a head says one thing twice

bool is_share(double x) { return x >= 0 && x <= 1; }
bool is_whole(double x) { return x == std::floor(x) && x >= -1 && x < 100000; }

/// Rows of six numbers: which of the two orders, told from what stands in them.
Form form_of_rows(const std::vector<float>& values) {
  bool class_first = true;
  bool corners_first = true;
  bool any = false;
  const std::size_t rows = std::min(values.size() / kRow, kMostLooked);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* row = values.data() + i * kRow;
    // Places that hold nothing are filled up with zeros or -1.
    if (std::all_of(row, row + kRow, [](float x) { return x == 0 || x == -1; })) continue;
    any = true;
    class_first &= is_whole(row[0]) && is_share(row[1]) && row[4] >= row[2] && row[5] >= row[3];
    corners_first &= is_whole(row[5]) && is_share(row[4]) && row[2] >= row[0] && row[3] >= row[1];
  }
  if (!any) return Form::None;
  if (corners_first) return Form::CornersFirst;
  return class_first ? Form::ClassFirst : Form::None;
}

/// [4 + classes, places]: sizes are positive, scores are shares.
bool is_head(const std::vector<float>& values, std::int64_t channels, std::int64_t places,
             bool transposed) {
  if (channels < 5 || places < kFewestPlaces || places <= channels) return false;
  const auto at = [&](std::int64_t channel, std::int64_t place) {
    const std::int64_t index = transposed ? place * channels + channel : channel * places + place;
    return static_cast<double>(values[static_cast<std::size_t>(index)]);
  };
  const std::int64_t step =
      std::max<std::int64_t>(1, places / static_cast<std::int64_t>(kMostLooked));
  bool beyond_one = false;
  for (std::int64_t place = 0; place < places; place += step) {
    if (at(2, place) < 0 || at(3, place) < 0) return false;
    beyond_one |= at(0, place) > 1 || at(2, place) > 1;
    for (std::int64_t channel = 4; channel < channels; ++channel) {
      if (!is_share(at(channel, place))) return false;
    }
  }
  return beyond_one;  // else it could be any table of shares
}

Form form_of(const Tensor& output) {
  const Shape& shape = output.shape();
  if (!info(output.dtype()).is_float || output.size() == 0 || shape.size() < 2) return Form::None;
  const std::vector<float> values = to_float(output);
  if (shape.back() == kRow && shape.size() <= 3) return form_of_rows(values);
  if (shape.size() != 3) return Form::None;
  if (is_head(values, shape[1], shape[2], false)) return Form::Centres;
  return is_head(values, shape[2], shape[1], true) ? Form::CentresTransposed : Form::None;
}

std::vector<Box> rows_to_boxes(const float* values, std::size_t rows, Form form, double least) {
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < rows; ++i) {
    const float* row = values + i * kRow;
    const bool first = form == Form::ClassFirst;
    const float* corners = first ? row + 2 : row;
    Box box{corners[0],
            corners[1],
            corners[2],
            corners[3],
            first ? row[1] : row[4],
            static_cast<std::int64_t>(first ? row[0] : row[5])};
    if (box.score >= least && box.label >= 0) boxes.push_back(box);
  }
  return boxes;
}

/// The boxes of a head, of those that say one thing the surest.
std::vector<Box> head_to_boxes(const float* values, std::int64_t channels, std::int64_t places,
                               bool transposed, double least) {
  const auto at = [&](std::int64_t channel, std::int64_t place) {
    return static_cast<double>(
        values[transposed ? place * channels + channel : channel * places + place]);
  };
  std::vector<Box> all;
  for (std::int64_t place = 0; place < places; ++place) {
    std::int64_t label = 0;
    for (std::int64_t c = 1; c < channels - 4; ++c) {
      if (at(4 + c, place) > at(4 + label, place)) label = c;
    }
    const double score = at(4 + label, place);
    if (!(score >= least)) continue;
    const double x = at(0, place), y = at(1, place);
    const double w = at(2, place) / 2, h = at(3, place) / 2;
    all.push_back({x - w, y - h, x + w, y + h, score, label});
  }
  std::ranges::stable_sort(all, std::greater<>(), &Box::score);
  if (all.size() > kMostBoxes) all.resize(kMostBoxes);
  std::vector<Box> kept;
  for (const Box& box : all) {
    const bool again = std::ranges::any_of(kept, [&](const Box& other) {
      return other.label == box.label && overlap(box, other) > kSuppressed;
    });
    if (!again) kept.push_back(box);
  }
  return kept;
}

std::vector<Box> boxes_in(const Truth& truth) {
  std::vector<Box> boxes;
  const auto values = truth.values.data<double>();
  for (std::size_t i = 0; i + 5 <= values.size(); i += 5) {
    boxes.push_back({values[i], values[i + 1], values[i + 2], values[i + 3], 1,
                     static_cast<std::int64_t>(values[i + 4])});
  }
  return boxes;
}

/// Shares of an image become pixels, where it is known how many it has.
void to_pixels(std::vector<Box>& boxes, ImageSize size) {
  constexpr double kMostShare = 2;  // boxes may reach over the edge
  const bool shares = std::ranges::all_of(boxes, [](const Box& box) {
    return std::max({std::abs(box.x1), std::abs(box.y1), std::abs(box.x2), std::abs(box.y2)}) <=
           kMostShare;
  });
  if (!shares || size.width == 0) return;
  for (Box& box : boxes) {
    box.x1 *= size.width;
    box.x2 *= size.width;
    box.y1 *= size.height;
    box.y2 *= size.height;
  }
}

}  // namespace

std::vector<BoxPair> pair_boxes(const Tensor& actual, const Tensor& expected, const Truths* truths,
                                double least_score) {
  std::vector<BoxPair> pairs;
  if (truths == nullptr) {
    auto found = boxes_of(actual, expected, least_score);
    auto wanted = boxes_of(expected, expected, least_score);
    for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
      pairs.push_back({std::move(found[i]), std::move(wanted[i])});
    }
    return pairs;
  }
  auto found = boxes_of(actual, actual, least_score);
  const auto all = truths_of(*truths, expected, actual, static_cast<std::int64_t>(found.size()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    to_pixels(found[i], all[i].size);
    pairs.push_back({std::move(found[i]), boxes_in(all[i])});
  }
  return pairs;
}

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0) || !(height > 0)) return 0;
  const double shared = width * height;
  const double both = (a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - shared;
  return both > 0 ? shared / both : 0;
}

bool holds_boxes(const Tensor& output) { return form_of(output) != Form::None; }

std::vector<std::vector<Box>> boxes_of(const Tensor& output, const Tensor& like,
                                       double least_score) {
  const Shape& shape = output.shape();
  const bool rows = !shape.empty() && shape.back() == kRow && shape.size() <= 3;
  Form form = form_of(like);
  // A reference without a single box does not say; the output may.
  if (form == Form::None && rows) form = form_of(output);
  if (form == Form::None && !rows) {
    fail(ErrorKind::BadData,
         "an output of shape {} holds no boxes in a known form: rows of x1,y1,x2,y2,score,class or "
         "class,score,x1,y1,x2,y2, or [4+classes, places]",
         to_string(shape));
  }
  const std::vector<float> values = to_float(output);
  const auto images = static_cast<std::size_t>(shape.size() == 3 ? shape[0] : 1);
  const std::size_t size = images == 0 ? 0 : values.size() / images;
  std::vector<std::vector<Box>> all;
  for (std::size_t i = 0; i < images; ++i) {
    const float* image = values.data() + i * size;
    if (rows) {
      all.push_back(rows_to_boxes(image, size / kRow, form, least_score));
      std::ranges::stable_sort(all.back(), std::greater<>(), &Box::score);
    } else {
      const bool transposed = form == Form::CentresTransposed;
      all.push_back(head_to_boxes(image, shape[transposed ? 2 : 1], shape[transposed ? 1 : 2],
                                  transposed, least_score));
    }
  }
  return all;
}

std::vector<std::int64_t> match(const std::vector<Box>& found, const std::vector<Box>& wanted,
                                double least_overlap) {
  std::vector<bool> taken(wanted.size(), false);
  std::vector<std::int64_t> matches;
  for (const Box& box : found) {
    std::int64_t best = -1;
    double most = least_overlap;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (taken[i] || wanted[i].label != box.label) continue;
      const double share = overlap(box, wanted[i]);
      if (share < most) continue;
      most = share;
      best = static_cast<std::int64_t>(i);
    }
    if (best >= 0) taken[static_cast<std::size_t>(best)] = true;
    matches.push_back(best);
  }
  return matches;
}

}  // namespace quench::metrics
