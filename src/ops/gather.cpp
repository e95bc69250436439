// SPDX-License-Identifier: Apache-2.0
// Operators that pick or place elements by index.
#include <algorithm>
#include <limits>

#include "ops/context.h"

namespace quench::ops {
namespace {

void propagate_gather(InferContext& context) {
  const SymInts* data = context.ints(0);
  const auto indices = context.numbers(1);
  const Dims* dims = context.shape(0);
  if (data == nullptr || !indices || dims == nullptr || dims->size() != 1) return;
  SymInts result;
  for (std::int64_t index : *indices) {
    const auto size = static_cast<std::int64_t>(data->size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) return;  // wrong if it is ever run, and then noticed
    result.push_back((*data)[static_cast<std::size_t>(index)]);
  }
  context.set_ints(0, std::move(result));
}

/// The parameters of a Slice along one dimension.
struct Cut {
  SymInt start;
  SymInt end;
  SymInt step = 1;
};

std::int64_t clamp_start(std::int64_t at, std::int64_t size, std::int64_t step) {
  if (at < 0) at += size;
  return std::clamp<std::int64_t>(at, 0, step > 0 ? size : std::max<std::int64_t>(size - 1, 0));
}

std::int64_t clamp_end(std::int64_t at, std::int64_t size, std::int64_t step) {
  if (at < 0) at += at < -size ? 0 : size;
  return step > 0 ? std::clamp<std::int64_t>(at, 0, size) : std::clamp<std::int64_t>(at, -1, size);
}

/// The number of elements a cut leaves of `size`.
std::int64_t cut_size(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const std::int64_t from = clamp_start(start, size, step);
  const std::int64_t to = clamp_end(end, size, step);
  const std::int64_t span = step > 0 ? to - from : from - to;
  // The smallest number has no positive twin; any larger step gives the same single element.
  const std::int64_t stride = step == std::numeric_limits<std::int64_t>::min()
                                  ? std::numeric_limits<std::int64_t>::max()
                                  : std::abs(step);
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

Dim cut_dim(const Dim& dim, const Cut& cut) {
  if (cut.step.is(0)) fail(ErrorKind::BadModel, "a step is 0");
  constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int32_t>::max();
  if (dim.known() && cut.start.number && cut.end.number && cut.step.number) {
    return Dim{cut_size(dim.value, *cut.start.number, *cut.end.number, *cut.step.number), {}};
  }
  if (!cut.step.is(1)) {
    const bool whole = cut.start.is(0) && cut.end.number && *cut.end.number >= kToTheEnd;
    return whole && cut.step.number && *cut.step.number > 0
               ? ceil_div(SymInt(dim), *cut.step.number).dim()
               : Dim{};
  }
  const SymInt size(dim);
  const bool to_end = (cut.end.number && *cut.end.number >= kToTheEnd) || cut.end == size;
  if (to_end && cut.start.is(0)) return dim;
  // Only a guess could say that a symbolic dimension is long enough for other cuts, except these:
  if (to_end && cut.start.number && *cut.start.number > 0) return (size - cut.start).dim();
  if (cut.start.is(0) && cut.end.number && *cut.end.number < 0) return (size + cut.end).dim();
  if (cut.start.is(0) && !cut.end.symbol.empty()) return cut.end.dim();
  return Dim{};
}

/// Reads a list that older opsets have as an attribute; false when it is not known.
bool read_list(const InferContext& context, std::string_view name, std::size_t index,
               SymInts& list) {
  if (const auto* numbers = context.node().get<std::vector<std::int64_t>>(name)) {
    list.assign(numbers->begin(), numbers->end());
    return true;
  }
  const SymInts* values = context.ints(index);
  if (values != nullptr) list = *values;
  return values != nullptr || !context.has_input(index);
}

/// The cut along each dimension; nothing when the axes are not known.
std::optional<std::vector<Cut>> read_cuts(const InferContext& context, std::size_t rank) {
  SymInts starts;
  SymInts ends;
  SymInts axes;
  SymInts steps;
  const bool known_starts = read_list(context, "starts", 1, starts);
  const bool known_ends = read_list(context, "ends", 2, ends);
  if (!read_list(context, "axes", 3, axes)) return std::nullopt;
  const bool known_steps = read_list(context, "steps", 4, steps);
  if (!known_starts && !known_ends) return std::nullopt;
  const std::size_t count = known_starts ? starts.size() : ends.size();
  if (axes.empty()) {
    for (std::size_t i = 0; i < count; ++i) axes.emplace_back(static_cast<std::int64_t>(i));
  }
  if ((known_starts && known_ends && starts.size() != ends.size()) || axes.size() != count ||
      (!steps.empty() && steps.size() != count)) {
    fail(ErrorKind::BadModel, "starts, ends, axes and steps have {}, {}, {} and {} entries",
         starts.size(), ends.size(), axes.size(), steps.size());
  }
  std::vector<Cut> cuts(rank, Cut{0, std::numeric_limits<std::int64_t>::max(), 1});
  for (std::size_t i = 0; i < count; ++i) {
    if (!axes[i].number) return std::nullopt;
    Cut& cut = cuts[checked_axis(*axes[i].number, rank, "an entry of axes")];
    cut.start = known_starts ? starts[i] : SymInt();
    cut.end = known_ends ? ends[i] : SymInt();
    cut.step = known_steps ? (steps.empty() ? SymInt(1) : steps[i]) : SymInt();
  }
  return cuts;
}

void propagate_slice(InferContext& context, const Cut& cut) {
  const SymInts* values = context.ints(0);
  if (values == nullptr || !cut.start.number || !cut.end.number || !cut.step.number) return;
  const auto size = static_cast<std::int64_t>(values->size());
  const std::int64_t count = cut_size(size, *cut.start.number, *cut.end.number, *cut.step.number);
  const std::int64_t from = clamp_start(*cut.start.number, size, *cut.step.number);
  SymInts result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back((*values)[static_cast<std::size_t>(from + i * *cut.step.number)]);
  }
  context.set_ints(0, std::move(result));
}

}  // namespace

void infer_gather(InferContext& context) {
  const Dims* data = context.shape(0);
  const Dims* indices = context.shape(1);
  context.set(0, context.dtype(0), std::nullopt);
  if (data == nullptr) return;
  const std::size_t axis = checked_axis(context.node().get_int("axis", 0), data->size());
  if (indices == nullptr) return;
  Dims result = *data;
  const auto at = result.erase(result.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(at, indices->begin(), indices->end());
  context.set(0, context.dtype(0), std::move(result));
  propagate_gather(context);
}

void infer_gather_elements(InferContext& context) {
  const Dims* data = context.shape(0);
  const Dims* indices = context.shape(1);
  if (data != nullptr) checked_axis(context.node().get_int("axis", 0), data->size());
  context.set(0, context.dtype(0), indices == nullptr ? std::nullopt : std::optional(*indices));
}

void infer_gather_nd(InferContext& context) {
  expect_min_rank(context, 0, 1);
  expect_min_rank(context, 1, 1);
  const Dims* data = context.shape(0);
  const Dims* indices = context.shape(1);
  context.set(0, context.dtype(0), std::nullopt);
  if (data == nullptr || indices == nullptr || !indices->back().known()) return;
  const std::int64_t batch = context.node().get_int("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(data->size());
  if (batch < 0 || batch >= rank || indices->back().value > rank - batch) {
    fail(ErrorKind::BadModel, "indices {} with batch_dims {} do not fit data {}",
         shape_text(*indices), batch, shape_text(*data));
  }
  Dims result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), data->begin() + batch + indices->back().value, data->end());
  context.set(0, context.dtype(0), std::move(result));
}

void infer_scatter(InferContext& context) {
  expect_same_dtype(context, 0, 2);
  const Dims* data = context.shape(0);
  if (data != nullptr && context.node().op_type != "ScatterND") {
    checked_axis(context.node().get_int("axis", 0), data->size());
  }
  context.set_like(0, 0);
}

void infer_slice(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  const auto cuts = read_cuts(context, input->size());
  if (!cuts) return context.set(0, context.dtype(0), unknown_dims(input->size()));
  Dims result;
  for (std::size_t i = 0; i < input->size(); ++i) {
    result.push_back(cut_dim((*input)[i], (*cuts)[i]));
  }
  context.set(0, context.dtype(0), std::move(result));
  if (input->size() == 1) propagate_slice(context, cuts->front());
}

void infer_one_hot(InferContext& context) {
  const Dims* indices = context.shape(0);
  context.set(0, context.dtype(2), std::nullopt);
  if (indices == nullptr) return;
  Dims result = *indices;
  const std::size_t axis = checked_axis(context.node().get_int("axis", -1), result.size() + 1);
  const SymInts* depth = context.ints(1);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis),
                depth == nullptr || depth->empty() ? Dim{} : depth->front().dim());
  context.set(0, context.dtype(2), std::move(result));
}

void infer_compress(InferContext& context) {
  const Dims* input = context.shape(0);
  const auto* axis = context.node().get<std::int64_t>("axis");
  context.set(0, context.dtype(0), std::nullopt);
  if (axis == nullptr) return context.set(0, context.dtype(0), unknown_dims(1));
  if (input == nullptr) return;
  Dims result = *input;
  result[checked_axis(*axis, result.size())] = Dim{};
  context.set(0, context.dtype(0), std::move(result));
}

void infer_non_zero(InferContext& context) {
  const Dims* input = context.shape(0);
  const std::int64_t rank =
      input == nullptr ? -1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(input->size()));
  context.set(0, DType::Int64, Dims{Dim{rank, {}}, Dim{}});
}

void infer_unique(InferContext& context) {
  const Dims* input = context.shape(0);
  const auto* axis = context.node().get<std::int64_t>("axis");
  context.set(0, context.dtype(0), axis == nullptr ? std::optional(unknown_dims(1)) : std::nullopt);
  if (axis != nullptr && input != nullptr) {
    Dims result = *input;
    result[checked_axis(*axis, result.size())] = Dim{};
    context.set(0, context.dtype(0), std::move(result));
  }
  for (std::size_t i = 1; i < 4; ++i) context.set(i, DType::Int64, unknown_dims(1));
}

void infer_cumsum(InferContext& context) {
  const Dims* input = context.shape(0);
  const auto axis = context.number(1);
  if (input != nullptr && axis) checked_axis(*axis, input->size());
  context.set_like(0, 0);
}

void infer_reverse_sequence(InferContext& context) {
  expect_min_rank(context, 0, 2);
  context.set_like(0, 0);
}

void infer_trilu(InferContext& context) {
  expect_min_rank(context, 0, 2);
  context.set_like(0, 0);
}

}  // namespace quench::ops
