// SPDX-License-Identifier: Apache-2.0
// Operators that give the same elements another shape, and those that read a shape.
#include <algorithm>

#include "ops/context.h"

namespace quench::ops {
namespace {

/// Whether sizes that are all known say that a reshape cannot be.
void check_count(const Dims& from, const Dims& to) {
  const SymInt before = product(from);
  const SymInt after = product(to);
  if (before.number && after.number && before.number != after.number) {
    fail(ErrorKind::BadModel, "{} with {} elements cannot become {} with {}", shape_text(from),
         *before.number, shape_text(to), *after.number);
  }
}

/// Copies the dimensions that a 0 stands for; returns where the -1 stands, or the size.
std::size_t fill_wanted(const SymInts& wanted, const Dims* input, bool copy_zero, Dims& result) {
  std::size_t open = wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].is(-1)) {
      if (open != wanted.size()) fail(ErrorKind::BadModel, "the new shape holds -1 twice");
      open = i;
    } else if (wanted[i].number && *wanted[i].number < 0) {
      fail(ErrorKind::BadModel, "the new shape holds {}", *wanted[i].number);
    } else if (wanted[i].is(0) && copy_zero) {
      if (input == nullptr) continue;
      if (i >= input->size()) {
        fail(ErrorKind::BadModel,
             "0 at place {} of the new shape has no dimension of input {} to copy", i,
             shape_text(*input));
      }
      result[i] = (*input)[i];
    } else {
      result[i] = wanted[i].dim();
    }
  }
  return open;
}

Dims reshaped(const Dims* input, const SymInts& wanted, bool copy_zero) {
  Dims result = unknown_dims(wanted.size());
  const std::size_t open = fill_wanted(wanted, input, copy_zero, result);
  if (input == nullptr) return result;
  if (open == wanted.size()) {
    // One unknown place can be told from the rest, just as -1 can.
    const auto blank = [](const Dim& dim) { return !dim.known() && dim.symbol.empty(); };
    if (std::count_if(result.begin(), result.end(), blank) != 1) {
      check_count(*input, result);
      return result;
    }
    const auto hole = std::find_if(result.begin(), result.end(), blank);
    Dims rest = result;
    rest.erase(rest.begin() + (hole - result.begin()));
    if (!product(rest).is(0)) *hole = quotient(*input, rest).dim();
    return result;
  }
  Dims rest = result;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(open));
  const SymInt part = product(rest);
  const SymInt total = product(*input);
  if (part.is(0)) return result;
  if (part.number && total.number && *total.number % *part.number != 0) {
    fail(ErrorKind::BadModel, "input {} with {} elements cannot be cut into {}", shape_text(*input),
         *total.number, shape_text(result));
  }
  result[open] = quotient(*input, rest).dim();
  return result;
}

/// The rank of the result when only the length of the shape input is known.
std::optional<Dims> rank_only(const InferContext& context, std::size_t index) {
  const Dims* dims = context.shape(index);
  if (dims == nullptr || dims->size() != 1 || !dims->front().known()) return std::nullopt;
  constexpr std::int64_t kMaxRank = 64;
  if (dims->front().value > kMaxRank) return std::nullopt;
  return unknown_dims(static_cast<std::size_t>(dims->front().value));
}

void keep_ints(InferContext& context) {
  if (const SymInts* values = context.ints(0)) context.set_ints(0, *values);
}

}  // namespace

void infer_shape(InferContext& context) {
  const Dims* input = context.shape(0);
  if (input == nullptr) {
    context.set(0, DType::Int64, unknown_dims(1));
    return;
  }
  const auto rank = static_cast<std::int64_t>(input->size());
  const auto clamp = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = clamp(context.node().get_int("start", 0));
  const std::int64_t end = std::max(start, clamp(context.node().get_int("end", rank)));
  context.set(0, DType::Int64, Dims{Dim{end - start, {}}});
  context.set_ints(0, to_ints(std::span<const Dim>(*input).subspan(
                          static_cast<std::size_t>(start), static_cast<std::size_t>(end - start))));
}

void infer_size(InferContext& context) {
  context.set(0, DType::Int64, Dims{});
  if (const Dims* input = context.shape(0)) context.set_ints(0, {product(*input)});
}

void infer_reshape(InferContext& context) {
  context.set(0, context.dtype(0), std::nullopt);
  SymInts wanted;
  if (const SymInts* values = context.ints(1)) {
    wanted = *values;
  } else if (const auto* list = context.node().get<std::vector<std::int64_t>>("shape")) {
    wanted.assign(list->begin(), list->end());
  } else {
    if (auto dims = rank_only(context, 1)) context.set(0, context.dtype(0), std::move(dims));
    return;
  }
  const bool copy_zero = context.node().get_int("allowzero", 0) == 0;
  context.set(0, context.dtype(0), reshaped(context.shape(0), wanted, copy_zero));
  keep_ints(context);
}

void infer_flatten(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), unknown_dims(2));
  if (input == nullptr) return;
  const auto rank = static_cast<std::int64_t>(input->size());
  std::int64_t axis = context.node().get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    fail(ErrorKind::BadModel, "axis is {}, but the input has {} dimensions", axis, rank);
  }
  if (axis < 0) axis += rank;
  const std::span<const Dim> dims(*input);
  const auto cut = static_cast<std::size_t>(axis);
  context.set(0, context.dtype(0),
              Dims{product(dims.first(cut)).dim(), product(dims.subspan(cut)).dim()});
}

void infer_squeeze(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  const auto axes = context.parameter("axes", 1);
  if (input == nullptr || (axes.given && !axes.numbers)) return;
  std::vector<bool> drop(input->size(), false);
  if (axes.given) {
    drop = checked_axes(*axes.numbers, input->size());
  } else {
    for (std::size_t i = 0; i < drop.size(); ++i) {
      if (!(*input)[i].known()) return;  // it may be 1 or not: not even the rank is known
      drop[i] = (*input)[i].value == 1;
    }
  }
  Dims result;
  for (std::size_t i = 0; i < drop.size(); ++i) {
    const Dim& dim = (*input)[i];
    if (!drop[i]) {
      result.push_back(dim);
    } else if (dim.known() && dim.value != 1) {
      fail(ErrorKind::BadModel, "dimension {} of {} is not 1 and cannot be squeezed", i,
           shape_text(*input));
    }
  }
  context.set(0, context.dtype(0), std::move(result));
  keep_ints(context);
}

void infer_unsqueeze(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  const auto axes = context.parameter("axes", 1);
  if (input == nullptr || !axes.numbers) return;
  const std::vector<bool> added = checked_axes(*axes.numbers, input->size() + axes.numbers->size());
  Dims result;
  std::size_t next = 0;
  for (const bool is_new : added) result.push_back(is_new ? Dim{1, {}} : (*input)[next++]);
  context.set(0, context.dtype(0), std::move(result));
  keep_ints(context);
}

void infer_expand(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  const SymInts* wanted = context.ints(1);
  if (wanted == nullptr) {
    const auto dims = rank_only(context, 1);
    if (dims && input != nullptr) context.set(0, context.dtype(0), broadcast(*input, *dims));
    return;
  }
  for (const SymInt& value : *wanted) {
    if (value.number && *value.number < 0) {
      fail(ErrorKind::BadModel, "the wanted shape holds {}", *value.number);
    }
  }
  if (input != nullptr) context.set(0, context.dtype(0), broadcast(*input, to_dims(*wanted)));
  if (wanted->size() == 1 && wanted->front().number && context.ints(0) != nullptr &&
      context.ints(0)->size() == 1 && *wanted->front().number <= 64) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(*wanted->front().number, 1));
    context.set_ints(0, SymInts(count, context.ints(0)->front()));
  }
}

}  // namespace quench::ops
