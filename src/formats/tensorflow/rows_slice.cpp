// SPDX-License-Identifier: Apache-2.0
// TensorFlow's operators that put tensors together and cut them apart.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"

namespace quench::tensorflow {
namespace {

bool is_whole(DType dtype) { return dtype == DType::Int32 || dtype == DType::Int64; }

/// The numbers of inputs `from` to `to` one behind the other, where all of them are sizes.
std::optional<Ints> gathered(const Step& step, std::size_t from, std::size_t to) {
  constexpr std::size_t kMost = 64;
  Ints all;
  for (std::size_t i = from; i < to; ++i) {
    const auto numbers = is_whole(step.dtype(i)) ? step.sizes(i) : std::nullopt;
    if (!numbers || all.size() + numbers->size() > kMost) return std::nullopt;
    all.insert(all.end(), numbers->begin(), numbers->end());
  }
  return all;
}

void concat(Step& step, std::size_t from, std::size_t to, std::size_t axis_input) {
  if (from >= to) fail(ErrorKind::BadModel, "it has nothing to put together");
  const std::int64_t rank = step.rank(from);
  const std::int64_t axis = step.axis(step.need_int(axis_input), rank);
  if (rank == 1) {
    if (const auto numbers = gathered(step, from, to)) {
      return step.set_sizes(*numbers, {std::ssize(*numbers)});
    }
  }
  std::vector<int> parts;
  Shape shape = step.shape(from);
  std::int64_t sum = 0;
  for (std::size_t i = from; i < to; ++i) {
    const Shape part = step.shape(i);
    if (std::ssize(part) != rank) fail(ErrorKind::BadModel, "input {} has another rank", i);
    const std::int64_t size = part[static_cast<std::size_t>(axis)];
    sum = size < 0 || sum < 0 ? -1 : sum + size;
    parts.push_back(step.in(i));
    for (std::size_t d = 0; d < part.size(); ++d) {
      if (shape[d] == -1) shape[d] = part[d];
    }
  }
  shape[static_cast<std::size_t>(axis)] = sum;
  step.set(step.make("CONCATENATION", parts, shape, step.dtype(from), {{"axis", axis}}));
}

void lower_concat_v2(Step& step) {
  if (step.num_inputs() < 2) fail(ErrorKind::BadModel, "it has {} inputs", step.num_inputs());
  concat(step, 0, step.num_inputs() - 1, step.num_inputs() - 1);
}

void lower_concat(Step& step) { concat(step, 1, step.num_inputs(), 0); }

void lower_pack(Step& step) {
  const std::int64_t axis = step.axis(step.number("axis", 0), step.rank() + 1);
  const auto count = std::ssize(Ints(step.num_inputs()));
  if (step.rank() == 0) {
    if (const auto numbers = gathered(step, 0, step.num_inputs())) {
      return step.set_sizes(*numbers, {std::ssize(*numbers)});
    }
  }
  std::vector<int> parts;
  for (std::size_t i = 0; i < step.num_inputs(); ++i) {
    if (step.rank(i) != step.rank()) fail(ErrorKind::BadModel, "input {} has another rank", i);
    parts.push_back(step.in(i));
  }
  Shape shape = step.shape();
  shape.insert(shape.begin() + axis, count);
  step.set(step.make("PACK", parts, shape, step.dtype(), {{"num", count}, {"axis", axis}}));
}

void lower_unpack(Step& step) {
  const std::int64_t axis = step.axis(step.number("axis", 0), step.rank());
  const std::int64_t count = step.number("num", 0);
  constexpr std::int64_t kMost = 1 << 16;
  if (count <= 0 || count > kMost) fail(ErrorKind::BadModel, "it makes {} tensors", count);
  Shape shape = step.shape();
  shape.erase(shape.begin() + axis);
  step.make_all("UNPACK", {step.in()}, std::vector<Shape>(static_cast<std::size_t>(count), shape),
                step.dtype(), {{"num", count}, {"axis", axis}});
}

void lower_split(Step& step) {
  const std::int64_t axis = step.axis(step.need_int(0), step.rank(1));
  const std::int64_t count = step.number("num_split", 0);
  Shape shape = step.shape(1);
  std::int64_t& size = shape[static_cast<std::size_t>(axis)];
  constexpr std::int64_t kMost = 1 << 16;
  if (count <= 0 || count > kMost || (size >= 0 && size % count != 0)) {
    fail(ErrorKind::BadModel, "{} cannot be split into {} parts", size, count);
  }
  if (size > 0) size /= count;
  step.make_all("SPLIT", {step.in(0), step.in(1)},
                std::vector<Shape>(static_cast<std::size_t>(count), shape), step.dtype(1));
}

void lower_split_v(Step& step) {
  const std::int64_t axis = step.axis(step.need_int(2), step.rank());
  std::vector<Shape> shapes;
  const Ints sizes = step.need_ints(1);
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) sum += std::max<std::int64_t>(size, 0);
  for (const std::int64_t size : sizes) {
    Shape shape = step.shape();
    std::int64_t& part = shape[static_cast<std::size_t>(axis)];
    part = size >= 0 ? size : std::max<std::int64_t>(part - sum, -1);
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty()) fail(ErrorKind::BadModel, "it makes nothing");
  step.make_all("SPLIT_V", {step.in(0), step.in(1), step.in(2)}, shapes, step.dtype());
}

void lower_slice(Step& step) {
  const Ints begin = step.need_ints(1);
  const Ints size = step.need_ints(2);
  Shape shape = step.shape();
  if (begin.size() != shape.size() || size.size() != shape.size()) {
    fail(ErrorKind::BadModel, "it has {} begins and {} sizes for {} dimensions", begin.size(),
         size.size(), shape.size());
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool sound = begin[i] >= 0 && (shape[i] < 0 || begin[i] <= shape[i]);
    if (!sound) fail(ErrorKind::BadModel, "it begins at {} of {}", begin[i], shape[i]);
    if (size[i] >= 0) {
      shape[i] = size[i];
    } else if (shape[i] >= 0) {
      shape[i] -= begin[i];
    }
  }
  step.set(step.make("SLICE", {step.in(0), step.in(1), step.in(2)}, shape, step.dtype()));
}

bool bit(std::int64_t mask, std::size_t index) { return ((mask >> index) & 1) != 0; }

struct Range {
  std::int64_t first = 0, step = 1, count = 0;
};

/// What a slice takes of `size` elements, as Python has it.
Range range_of(std::int64_t size, std::optional<std::int64_t> begin,
               std::optional<std::int64_t> end, std::int64_t step) {
  const auto place = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  Range range{.step = step};
  if (step > 0) {
    range.first = begin ? place(*begin, 0, size) : 0;
    const std::int64_t stop = end ? place(*end, 0, size) : size;
    range.count = std::max<std::int64_t>((stop - range.first + step - 1) / step, 0);
  } else {
    range.first = begin ? place(*begin, -1, size - 1) : size - 1;
    const std::int64_t stop = end ? place(*end, -1, size - 1) : -1;
    range.count = std::max<std::int64_t>((range.first - stop - step - 1) / -step, 0);
  }
  return range;
}

struct Masks {
  std::int64_t begin, end, shrink;
};

/// One of its begins, ends and steps, by its number.
Range range_at(const Masks& masks, const Ints& begin, const Ints& end, const Ints& steps,
               std::size_t i, std::int64_t size) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  if (steps[i] == 0 || std::abs(steps[i]) > kMost) {
    fail(ErrorKind::BadModel, "it steps by {}", steps[i]);
  }
  if (bit(masks.shrink, i)) {
    const std::int64_t at = begin[i] < 0 ? begin[i] + size : begin[i];
    if (at < 0 || at >= size) fail(ErrorKind::BadModel, "it takes element {} of {}", at, size);
    return {.first = at, .step = 1, .count = 1};
  }
  return range_of(size, bit(masks.begin, i) ? std::nullopt : std::optional(begin[i]),
                  bit(masks.end, i) ? std::nullopt : std::optional(end[i]), steps[i]);
}

void lower_strided(Step& step) {
  const Masks masks{step.number("begin_mask", 0), step.number("end_mask", 0),
                    step.number("shrink_axis_mask", 0)};
  const Ints begin = step.need_ints(1), end = step.need_ints(2), steps = step.need_ints(3);
  const Shape from = step.shape();
  if (begin.size() != end.size() || begin.size() != steps.size() || begin.size() > from.size()) {
    fail(ErrorKind::BadModel, "it has {} begins, {} ends and {} steps for {} dimensions",
         begin.size(), end.size(), steps.size(), from.size());
  }
  const auto numbers = from.size() == 1 && is_whole(step.dtype()) ? step.sizes(0) : std::nullopt;
  if (numbers && begin.size() == 1) {
    const Range range = range_at(masks, begin, end, steps, 0, std::ssize(*numbers));
    Ints taken;
    for (std::int64_t i = 0; i < range.count; ++i) {
      taken.push_back((*numbers)[static_cast<std::size_t>(range.first + i * range.step)]);
    }
    return step.set_sizes(taken, bit(masks.shrink, 0) ? Shape{} : Shape{std::ssize(taken)});
  }
  Shape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i >= begin.size() || from[i] < 0) {
      if (i >= begin.size() || !bit(masks.shrink, i)) shape.push_back(from[i]);
      continue;
    }
    const Range range = range_at(masks, begin, end, steps, i, from[i]);
    if (!bit(masks.shrink, i)) shape.push_back(range.count);
  }
  step.set(step.make("STRIDED_SLICE", {step.in(0), step.in(1), step.in(2), step.in(3)}, shape,
                     step.dtype(),
                     {{"begin_mask", masks.begin},
                      {"end_mask", masks.end},
                      {"ellipsis_mask", step.number("ellipsis_mask", 0)},
                      {"new_axis_mask", step.number("new_axis_mask", 0)},
                      {"shrink_mask", masks.shrink}}));
}

void lower_gather(Step& step) {
  const std::int64_t given = step.op() == "GatherV2" ? step.need_int(2) : 0;
  const std::int64_t axis = step.axis(given, step.rank());
  if (step.number("batch_dims", 0) != 0) {
    fail(ErrorKind::Unsupported, "it gathers batch by batch (batch_dims), which is not read");
  }
  Shape shape = step.shape();
  shape.erase(shape.begin() + axis);
  const Shape indices = step.shape(1);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  step.set(step.make("GATHER", {step.in(0), step.in(1)}, shape, step.dtype(), {{"axis", axis}}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"ConcatV2", lower_concat_v2},
    {"Concat", lower_concat},
    {"Pack", lower_pack},
    {"Unpack", lower_unpack},
    {"Split", lower_split},
    {"SplitV", lower_split_v},
    {"Slice", lower_slice},
    {"StridedSlice", lower_strided},
    {"Gather", lower_gather},
    {"GatherV2", lower_gather},
});

}  // namespace

std::span<const OpRow> slice_rows() { return kRows; }

}  // namespace quench::tensorflow
