// SPDX-License-Identifier: Apache-2.0
// Paddle's diagonals, and the tensors that it makes of triangles and lengths.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMost = 1 << 24;

DType type_of(Op& op, std::string_view attribute) {
  return dtype_of(static_cast<std::int32_t>(op.integer(attribute)));
}

Tensor ints_of(const Shape& shape, const Ints& values) {
  return Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(values));
}

void expect_made(std::int64_t rows, std::int64_t columns) {
  if (rows >= 0 && columns >= 0 && (columns == 0 || rows <= kMost / columns)) return;
  fail(ErrorKind::Unsupported, "a matrix of {} x {} is not made", rows, columns);
}

/// Ones on a diagonal.
Tensor ones_on(std::int64_t rows, std::int64_t columns, std::int64_t offset, DType dtype) {
  expect_made(rows, columns);
  std::vector<float> values(static_cast<std::size_t>(rows * columns), 0.0F);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t k = i + offset;
    if (k >= 0 && k < columns) values[static_cast<std::size_t>(i * columns + k)] = 1;
  }
  return convert(Tensor::of<float>({rows, columns}, std::span<const float>(values)), dtype);
}

void read_eye(Op& op) {
  const std::int64_t rows = op.single("num_rows");
  const Ints given = op.numbers("num_columns");
  const std::int64_t columns = given.empty() || given[0] < 0 ? rows : given[0];
  op.set("Out", op.constant(ones_on(rows, columns, 0, type_of(op, "dtype"))));
}

/// Rows and columns of the elements on one side of a diagonal.
void triangle(Op& op, std::string_view columns_name, bool lower) {
  const std::int64_t rows = op.integer(lower ? "rows" : "row");
  const std::int64_t columns = op.integer(columns_name);
  const std::int64_t offset = op.integer("offset");
  expect_made(rows, columns);
  Ints places[2];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < columns; ++k) {
      if (lower ? k - i > offset : k - i < offset) continue;
      places[0].push_back(i);
      places[1].push_back(k);
    }
  }
  const std::int64_t count = std::ssize(places[0]);
  places[0].insert(places[0].end(), places[1].begin(), places[1].end());
  op.set("out", op.constant(convert(ints_of({2, count}, places[0]), type_of(op, "dtype"))));
}
void read_tril_indices(Op& op) { triangle(op, "cols", true); }
void read_triu_indices(Op& op) { triangle(op, "col", false); }

/// A vector on a diagonal of what is `padding` elsewhere.
ValueId on_diagonal(Op& op, ValueId x, std::int64_t size, std::int64_t offset, double padding) {
  const std::int64_t side = size + std::abs(offset);
  expect_made(side, side);
  const DType dtype = op.dtype(op.has("X") ? "X" : "Input");
  // Element i stands in row i, or below `-offset` others.
  const std::int64_t before = offset < 0 ? -offset : 0;
  const std::int64_t behind = side - size - before;
  const std::int64_t rank = op.need_rank(op.has("X") ? "X" : "Input");
  Ints pads(static_cast<std::size_t>(2 * rank), 0);
  pads[static_cast<std::size_t>(rank) - 1] = before;
  pads.back() = behind;
  const ValueId padded = op.node("Pad", {x, op.ints(pads), op.scalar(0, dtype)});
  const Tensor ones = ones_on(side, side, offset, DType::Float32);
  const ValueId mask = op.constant(convert(ones, DType::Bool));
  return op.node("Where", {mask, op.unsqueeze(padded, {-1}), op.scalar(padding, dtype)});
}

/// The elements of a diagonal of the last two dimensions.
ValueId diagonal_of(Op& op, ValueId x, std::int64_t rows, std::int64_t columns,
                    std::int64_t offset) {
  expect_made(rows, columns);
  Ints places;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i + offset >= 0 && i + offset < columns) places.push_back(i * columns + i + offset);
  }
  const ValueId outer = op.slice(op.sizes(x), 0, 0, -2);
  const ValueId shape = op.node("Concat", {outer, op.ints({-1})}, {{"axis", std::int64_t{0}}});
  return op.node("Gather", {op.node("Reshape", {x, shape}), op.ints(places)},
                 {{"axis", std::int64_t{-1}}});
}

void read_diag(Op& op) {
  const Shape shape = op.need_shape("X");
  const std::int64_t offset = std::clamp<std::int64_t>(op.integer("offset"), -kMost, kMost);
  if (shape.size() == 1) {
    op.set("Out", on_diagonal(op, op.in("X"), shape[0], offset, op.real("padding_value")));
  } else if (shape.size() == 2) {
    op.set("Out", diagonal_of(op, op.in("X"), shape[0], shape[1], offset));
  } else {
    fail(ErrorKind::BadModel, "its input has {} dimensions; 1 or 2 are wanted", shape.size());
  }
}

void read_diag_embed(Op& op) {
  const Shape shape = op.shape("Input").value_or(Shape());
  const std::int64_t rank = std::ssize(shape);
  const auto last = [rank](std::int64_t dim, std::int64_t wanted) {
    return dim == wanted || dim == rank + 1 + wanted;
  };
  if (shape.empty() || shape.back() < 0 || !last(op.integer("dim1"), -2) ||
      !last(op.integer("dim2"), -1)) {
    fail(ErrorKind::Unsupported,
         "it is read where the last size is known and it makes the last "
         "two dimensions");
  }
  const std::int64_t offset = std::clamp<std::int64_t>(op.integer("offset"), -kMost, kMost);
  op.set("Out", on_diagonal(op, op.in("Input"), shape.back(), offset, 0));
}

/// The diagonal of two dimensions, which becomes the last.
ValueId of_axes(Op& op) {
  const Shape shape = op.shape("Input").value_or(Shape());
  const std::int64_t rank = std::ssize(shape);
  const auto place = [rank](std::int64_t axis) { return axis < 0 ? axis + rank : axis; };
  const std::int64_t first = place(op.integer("axis1"));
  const std::int64_t second = place(op.integer("axis2"));
  const auto known = [&](std::int64_t axis) {
    return axis >= 0 && axis < rank && shape[static_cast<std::size_t>(axis)] >= 0;
  };
  if (!known(first) || !known(second) || first == second) {
    fail(ErrorKind::Unsupported, "it is read where the sizes of both its dimensions are known");
  }
  Ints perm;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != first && i != second) perm.push_back(i);
  }
  perm.insert(perm.end(), {first, second});
  const std::int64_t offset = std::clamp<std::int64_t>(op.integer("offset"), -kMost, kMost);
  return diagonal_of(op, op.transpose(op.in("Input"), perm), shape[static_cast<std::size_t>(first)],
                     shape[static_cast<std::size_t>(second)], offset);
}

void read_diagonal(Op& op) { op.set("Out", of_axes(op)); }

/// Older programs give the sum of one matrix as one of one element.
void read_trace(Op& op) {
  const bool one = op.rank("Input") == 2 && op.rank("Out") == 1;
  op.set("Out", op.reduce("ReduceSum", of_axes(op), {-1}, one));
}

/// Whether a place lies before the length that is given.
void read_sequence_mask(Op& op) {
  const std::int64_t length = op.single("maxlen");
  if (length < 0 || length > kMost) {
    fail(ErrorKind::Unsupported, "the length of its rows is {}; it is read where it is known",
         length);
  }
  Ints places(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) places[static_cast<std::size_t>(i)] = i;
  const ValueId lengths = op.unsqueeze(op.cast(op.in("X"), DType::Int64), {-1});
  op.set("Y", op.cast(op.node("Less", {op.ints(places), lengths}), type_of(op, "out_dtype")));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"eye", "", "num_rows: num_columns:", "Out", "num_rows num_columns=-1 dtype=5", read_eye},
    {"tril_indices", "", "", "out", "rows cols offset=0 dtype=3", read_tril_indices},
    {"triu_indices", "", "", "out", "row col offset=0 dtype=3", read_triu_indices},
    {"diag_v2", "diag", "X", "Out", "offset=0 padding_value=0", read_diag},
    {"diag_embed", "", "Input", "Out", "offset=0 dim1=-2 dim2=-1", read_diag_embed},
    {"diagonal", "", "Input", "Out", "offset=0 axis1=0 axis2=1", read_diagonal},
    {"trace", "", "Input", "Out", "offset=0 axis1=0 axis2=1", read_trace},
    {"sequence_mask", "", "X maxlen:MaxLenTensor", "Y", "maxlen=-1 out_dtype=3",
     read_sequence_mask},
});

}  // namespace

std::span<const OpRow> diagonal_rows() { return kRows; }

}  // namespace quench::paddle
