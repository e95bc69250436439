// SPDX-License-Identifier: Apache-2.0
// Operators that move, join, cut, repeat or pad without computing.
#include <algorithm>
#include <numeric>

#include "ops/context.h"

namespace quench::ops {
namespace {

constexpr std::size_t kMaxListed = 256;

void propagate_concat(InferContext& context) {
  SymInts joined;
  for (std::size_t i = 0; i < context.num_inputs(); ++i) {
    const SymInts* values = context.ints(i);
    const Dims* dims = context.shape(i);
    if (dims == nullptr || dims->size() != 1 || joined.size() > kMaxListed) return;
    if (values != nullptr) {
      joined.insert(joined.end(), values->begin(), values->end());
    } else if (dims->front().known() && dims->front().value <= 64) {
      joined.resize(joined.size() + static_cast<std::size_t>(dims->front().value));
    } else {
      return;
    }
  }
  context.set_ints(0, std::move(joined));
}

void join(Dims& result, const Dims& next, std::size_t axis) {
  if (next.size() != result.size()) {
    fail(ErrorKind::BadModel, "{} and {} have different ranks and cannot be joined",
         shape_text(result), shape_text(next));
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (i == axis) {
      result[i] = (SymInt(result[i]) + SymInt(next[i])).dim();
    } else if (const auto both = unify(result[i], next[i])) {
      result[i] = *both;
    } else {
      fail(ErrorKind::BadModel, "{} and {} differ outside axis {} and cannot be joined",
           shape_text(result), shape_text(next), axis);
    }
  }
}

/// Joins every `stride`-th input, starting with `first`.
std::optional<Dims> concat_shape(const InferContext& context, std::size_t first, std::size_t stride,
                                 std::int64_t axis) {
  std::optional<Dims> result;
  std::size_t at = 0;
  bool complete = true;
  for (std::size_t i = first; i < context.num_inputs(); i += stride) {
    const Dims* dims = context.shape(i);
    if (dims == nullptr) {
      complete = false;
    } else if (!result) {
      result = *dims;
      at = checked_axis(axis, dims->size());
    } else {
      join(*result, *dims, at);
    }
  }
  if (result && !complete) (*result)[at] = Dim{};
  return result;
}

/// The sizes of the parts of a Split; unknown dimensions where they cannot be told.
Dims split_sizes(const InferContext& context, const Dim& whole) {
  const std::size_t count = context.num_outputs();
  const auto parts = context.parameter("split", 1);
  if (parts.given) {
    if (!parts.numbers) return unknown_dims(count);
    std::int64_t sum = 0;
    for (const std::int64_t part : *parts.numbers) {
      if (part < 0 || __builtin_add_overflow(sum, part, &sum)) {
        fail(ErrorKind::BadModel, "split holds {}", part);
      }
    }
    if (parts.numbers->size() != count || (whole.known() && sum != whole.value)) {
      fail(ErrorKind::BadModel, "{} parts of {} elements do not make {} outputs of {}",
           parts.numbers->size(), sum, count, to_string(whole));
    }
    return to_dims(*parts.numbers);
  }
  const std::int64_t pieces =
      context.node().get_int("num_outputs", static_cast<std::int64_t>(count));
  if (pieces < 1) fail(ErrorKind::BadModel, "num_outputs is {}", pieces);
  const SymInt piece = ceil_div(SymInt(whole), pieces);
  Dims result(count, piece.dim());
  if (whole.known() && static_cast<std::size_t>(pieces) == count) {
    result.back().value = std::max<std::int64_t>(0, whole.value - result[0].value * (pieces - 1));
  } else if (!whole.known() && context.opset() < 18) {
    // Equal parts, or the model does not run: the division is exact.
    std::fill(result.begin(), result.end(), floor_div(SymInt(whole), pieces).dim());
  }
  return result;
}

void propagate_split(InferContext& context, const Dims& sizes) {
  const SymInts* values = context.ints(0);
  if (values == nullptr) return;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].known() || at + static_cast<std::size_t>(sizes[i].value) > values->size()) return;
    const auto from = values->begin() + static_cast<std::ptrdiff_t>(at);
    context.set_ints(i, SymInts(from, from + static_cast<std::ptrdiff_t>(sizes[i].value)));
    at += static_cast<std::size_t>(sizes[i].value);
  }
}

/// For each dimension where its entry in a list of axes stands, or -1; no axes: all in order.
std::vector<std::ptrdiff_t> places_of(const InferContext& context, std::size_t index,
                                      std::size_t rank, const std::vector<std::int64_t>& all) {
  std::vector<std::int64_t> axes = all;
  if (context.has_input(index)) {
    const auto given = context.numbers(index);
    if (!given) return {};
    axes = *given;
  }
  checked_axes(axes, rank);
  std::vector<std::ptrdiff_t> places(rank, -1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    places[checked_axis(axes[i], rank)] = static_cast<std::ptrdiff_t>(i);
  }
  return places;
}

std::vector<std::int64_t> counting(std::size_t size) {
  std::vector<std::int64_t> result(size);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::int64_t checked_block(const InferContext& context) {
  constexpr std::int64_t kMaxBlock = 65536;
  const std::int64_t block = context.node().get_int("blocksize", 0);
  if (block < 1 || block > kMaxBlock) {
    fail(ErrorKind::BadModel, "blocksize is {}, which must be 1 to {}", block, kMaxBlock);
  }
  return block;
}

}  // namespace

void infer_transpose(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  auto perm = context.node().get_ints("perm");
  if (perm.empty()) {
    perm = counting(input->size());
    std::reverse(perm.begin(), perm.end());
  }
  if (perm.size() != input->size()) {
    fail(ErrorKind::BadModel, "perm has {} entries, but the input is {}", perm.size(),
         shape_text(*input));
  }
  checked_axes(perm, input->size());
  Dims result;
  for (const std::int64_t axis : perm) result.push_back((*input)[checked_axis(axis, perm.size())]);
  context.set(0, context.dtype(0), std::move(result));
  if (const SymInts* values = context.ints(0)) context.set_ints(0, *values);
}

void infer_concat(InferContext& context) {
  DType dtype = DType::Undefined;
  for (std::size_t i = 0; i < context.num_inputs(); ++i) {
    expect_same_dtype(context, 0, i);
    if (dtype == DType::Undefined) dtype = context.dtype(i);
  }
  // Before opset 4 the axis could be left out.
  const std::int64_t axis = context.node().get_int("axis", 1);
  context.set(0, dtype, concat_shape(context, 0, 1, axis));
  propagate_concat(context);
}

/// com.microsoft QLinearConcat: output scale and zero point, then triples of tensor, scale, zero.
void infer_qlinear_concat(InferContext& context) {
  context.set(0, context.dtype(1), concat_shape(context, 2, 3, context.node().get_int("axis", 1)));
}

void infer_split(InferContext& context) {
  const Dims* input = context.shape(0);
  for (std::size_t i = 0; i < context.num_outputs(); ++i) {
    context.set(i, context.dtype(0), std::nullopt);
  }
  if (input == nullptr || context.num_outputs() == 0) return;
  const std::size_t axis = checked_axis(context.node().get_int("axis", 0), input->size());
  const Dims sizes = split_sizes(context, (*input)[axis]);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Dims result = *input;
    result[axis] = sizes[i];
    context.set(i, context.dtype(0), std::move(result));
  }
  propagate_split(context, sizes);
}

void infer_tile(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  const SymInts* repeats = context.ints(1);
  if (repeats == nullptr || context.num_inputs() != 2) {
    context.set(0, context.dtype(0), unknown_dims(input->size()));
    return;
  }
  if (repeats->size() != input->size()) {
    fail(ErrorKind::BadModel, "repeats has {} entries, but the input is {}", repeats->size(),
         shape_text(*input));
  }
  Dims result;
  for (std::size_t i = 0; i < input->size(); ++i) {
    result.push_back((SymInt((*input)[i]) * (*repeats)[i]).dim());
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_depth_to_space(InferContext& context) {
  expect_rank(context, 0, 4);
  const Dims* input = context.shape(0);
  const std::int64_t block = checked_block(context);
  if (input == nullptr) return context.set(0, context.dtype(0), unknown_dims(4));
  if ((*input)[1].known() && (*input)[1].value % (block * block) != 0) {
    fail(ErrorKind::BadModel, "{} channels cannot be spread over blocks of {}x{}",
         (*input)[1].value, block, block);
  }
  context.set(0, context.dtype(0),
              Dims{(*input)[0], floor_div(SymInt((*input)[1]), block * block).dim(),
                   (SymInt((*input)[2]) * SymInt(block)).dim(),
                   (SymInt((*input)[3]) * SymInt(block)).dim()});
}

void infer_space_to_depth(InferContext& context) {
  expect_rank(context, 0, 4);
  const Dims* input = context.shape(0);
  const std::int64_t block = checked_block(context);
  if (input == nullptr) return context.set(0, context.dtype(0), unknown_dims(4));
  for (const std::size_t axis : {2U, 3U}) {
    if ((*input)[axis].known() && (*input)[axis].value % block != 0) {
      fail(ErrorKind::BadModel, "an input {} cannot be cut into blocks of {}x{}",
           shape_text(*input), block, block);
    }
  }
  context.set(0, context.dtype(0),
              Dims{(*input)[0], (SymInt((*input)[1]) * SymInt(block * block)).dim(),
                   floor_div(SymInt((*input)[2]), block).dim(),
                   floor_div(SymInt((*input)[3]), block).dim()});
}

void infer_pad(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  SymInts pads;
  if (const auto* list = context.node().get<std::vector<std::int64_t>>("pads")) {
    pads.assign(list->begin(), list->end());
  } else if (const auto* old = context.node().get<std::vector<std::int64_t>>("paddings")) {
    pads.assign(old->begin(), old->end());
  } else if (const SymInts* values = context.ints(1)) {
    pads = *values;
  }
  const std::size_t half = pads.size() / 2;
  const auto places = places_of(context, 3, input->size(), counting(std::min(half, input->size())));
  if (pads.empty() || places.empty()) {
    const bool nothing = input->empty() || (context.ints(1) != nullptr && !places.empty());
    return context.set(0, context.dtype(0), nothing ? *input : unknown_dims(input->size()));
  }
  const auto used = std::count_if(places.begin(), places.end(), [](auto p) { return p >= 0; });
  if (pads.size() % 2 != 0 || half != static_cast<std::size_t>(used) ||
      (!context.has_input(3) && half != input->size())) {
    fail(ErrorKind::BadModel, "pads has {} entries, which does not fit input {}", pads.size(),
         shape_text(*input));
  }
  Dims result = *input;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (places[i] < 0) continue;
    const auto at = static_cast<std::size_t>(places[i]);
    const SymInt size = SymInt(result[i]) + pads[at] + pads[at + half];
    if (size.number && *size.number < 0) {
      fail(ErrorKind::BadModel, "pads cut more than the {} elements of dimension {}",
           result[i].value, i);
    }
    result[i] = size.dim();
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_center_crop_pad(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  const SymInts* wanted = context.ints(1);
  auto axes = context.node().get_ints("axes");
  if (axes.empty()) axes = counting(input->size());
  checked_axes(axes, input->size());
  Dims result = *input;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim& dim = result[checked_axis(axes[i], result.size())];
    dim = wanted != nullptr && i < wanted->size() ? (*wanted)[i].dim() : Dim{};
  }
  context.set(0, context.dtype(0), std::move(result));
}

}  // namespace quench::ops
