// SPDX-License-Identifier: Apache-2.0
// Paddle's operators that pick elements by masks and places, and put others there.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

void read_masked_fill(Op& op) {
  const ValueId value = op.cast(op.in("Value"), op.dtype("X"));
  op.set("Out", op.node("Where", {op.in("Mask"), value, op.in("X")}));
}

/// Those that a mask of the same shape names, in a row.
void read_masked_select(Op& op) {
  ValueId mask = op.in("Mask");
  if (op.shape("Mask") != op.shape("X")) {
    mask = op.node("Expand", {mask, op.sizes(op.in("X"))});
  }
  op.set("Y", op.node("Compress", {op.reshape(op.in("X"), {-1}), op.reshape(mask, {-1})}));
}

/// From each row those that its own row of places names.
void read_index_sample(Op& op) {
  op.set("Out",
         op.node("GatherElements", {op.in("X"), op.in("Index")}, {{"axis", std::int64_t{1}}}));
}

void read_put_along_axis(Op& op) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kReductions{
      {{"assign", "none"},
       {"add", "add"},
       {"mul", "mul"},
       {"multiply", "mul"},
       {"amin", "min"},
       {"amax", "max"}}};
  const std::string how = op.text("Reduce");
  const auto* known =
      std::ranges::find(kReductions, how, [](const auto& row) { return row.first; });
  if (known == kReductions.end() || (known->second != "none" && !op.flag("Include_self"))) {
    fail(ErrorKind::Unsupported, "it puts values by '{}'{}", how,
         op.flag("Include_self") ? "" : " and leaves out those that are there");
  }
  const ValueId index = op.in("Index");
  ValueId values = op.in("Value");
  if (op.shape("Value") != op.shape("Index")) values = op.node("Expand", {values, op.sizes(index)});
  op.set("Result",
         op.node("ScatterElements", {op.in("Input"), index, values},
                 {{"axis", op.integer("Axis")}, {"reduction", std::string(known->second)}}));
}

/// The axis comes first; its own reverse, too.
Ints first_axis(std::int64_t axis, std::int64_t rank, bool back) {
  Ints perm;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.insert(perm.begin(), axis);
  if (!back) return perm;
  Ints reverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    reverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  }
  return reverse;
}

void read_index_add(Op& op) {
  const std::int64_t rank = op.need_rank("X");
  const std::int64_t given = op.integer("axis");
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) fail(ErrorKind::BadModel, "it has no dimension {}", given);
  const ValueId places = op.cast(op.reshape(op.in("Index"), {-1, 1}), DType::Int64);
  const auto turned = [&](ValueId value, bool back) {
    return axis == 0 ? value : op.transpose(value, first_axis(axis, rank, back));
  };
  const ValueId sum =
      op.node("ScatterND", {turned(op.in("X"), false), places, turned(op.in("AddValue"), false)},
              {{"reduction", std::string("add")}});
  op.set("Out", turned(sum, true));
}

/// Tensors of places, one for each of the first dimensions.
void read_index_put(Op& op) {
  const std::vector<ValueId> indices = op.ins("indices");
  if (indices.empty()) fail(ErrorKind::BadModel, "it names no places");
  if (op.dtype("indices") == DType::Bool) {
    fail(ErrorKind::Unsupported, "its places are a mask; they are read where they are numbers");
  }
  ValueId shape = kNoValue;
  std::vector<ValueId> columns;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (op.rank("indices", i) != op.rank("indices", 0)) {
      fail(ErrorKind::Unsupported, "its tensors of places have different ranks");
    }
    const ValueId sizes = op.sizes(indices[i]);
    shape = shape == kNoValue ? sizes : op.node("Max", {shape, sizes});
  }
  for (const ValueId each : indices) {
    const ValueId full = indices.size() == 1 ? each : op.node("Expand", {each, shape});
    columns.push_back(op.unsqueeze(op.cast(full, DType::Int64), {-1}));
  }
  const ValueId places = op.node("Concat", columns, {{"axis", std::int64_t{-1}}});
  const ValueId inner = op.slice(op.sizes(op.in("x")), 0, std::ssize(indices), kEnd);
  const ValueId wanted = op.node("Concat", {shape, inner}, {{"axis", std::int64_t{0}}});
  const ValueId values = op.node("Expand", {op.in("value"), wanted});
  op.set("out", op.node("ScatterND", {op.in("x"), places, values},
                        {{"reduction", std::string(op.flag("accumulate") ? "add" : "none")}}));
}

/// 0, 1, ... each as often as it says: the number of parts that end before a place.
ValueId repeated(Op& op, ValueId counts) {
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId one = op.constant(Tensor::scalar<std::int64_t>(1));
  const ValueId ends = op.node("CumSum", {counts, zero});
  const ValueId total = op.reduce("ReduceSum", counts, {0}, false);
  const ValueId places = op.node("Range", {zero, total, one});
  const ValueId passed =
      op.node("LessOrEqual", {op.unsqueeze(ends, {0}), op.unsqueeze(places, {1})});
  return op.reduce("ReduceSum", op.cast(passed, DType::Int64), {1}, false);
}

/// Each part so many times, or as often as a tensor says.
void read_repeat(Op& op) {
  const std::int64_t rank = op.need_rank("X");
  const std::int64_t given = op.integer("dim");
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) fail(ErrorKind::BadModel, "it has no dimension {}", given);
  if (op.has("RepeatsTensor")) {
    const IntList given_counts = op.list("RepeatsTensor");
    if (given_counts.computed()) {
      op.set("Out",
             op.node("Gather", {op.in("X"), repeated(op, given_counts.value)}, {{"axis", axis}}));
      return;
    }
    Ints places;
    constexpr std::int64_t kMost = 1 << 20;
    const Ints& counts = given_counts.numbers;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] < 0 || counts[i] > kMost - std::ssize(places)) {
        fail(ErrorKind::Unsupported, "it repeats a part {} times", counts[i]);
      }
      places.insert(places.end(), static_cast<std::size_t>(counts[i]),
                    static_cast<std::int64_t>(i));
    }
    op.set("Out", op.node("Gather", {op.in("X"), op.ints(places)}, {{"axis", axis}}));
    return;
  }
  const std::int64_t times = op.integer("Repeats");
  if (times < 0) fail(ErrorKind::BadModel, "it repeats {} times", times);
  Ints factors(static_cast<std::size_t>(rank), 1);
  factors[static_cast<std::size_t>(axis)] = times;
  Ints repeats(static_cast<std::size_t>(rank) + 1, 1);
  repeats[static_cast<std::size_t>(axis) + 1] = times;
  const ValueId sizes = op.node("Mul", {op.sizes(op.in("X")), op.ints(factors)});
  const ValueId tiled = op.node("Tile", {op.unsqueeze(op.in("X"), {axis + 1}), op.ints(repeats)});
  op.set("Out", op.node("Reshape", {tiled, sizes}));
}

/// Stretched to the shape that all of them have together.
void read_broadcast(Op& op) {
  const std::vector<ValueId> inputs = op.ins("X");
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) rank = std::max(rank, op.need_rank("X", i));
  ValueId shape = kNoValue;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ValueId sizes = op.sizes(inputs[i]);
    const std::int64_t missing = rank - op.need_rank("X", i);
    if (missing > 0) {
      const ValueId ones = op.ints(Ints(static_cast<std::size_t>(missing), 1));
      sizes = op.node("Concat", {ones, sizes}, {{"axis", std::int64_t{0}}});
    }
    shape = shape == kNoValue ? sizes : op.node("Max", {shape, sizes});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    op.set("Out", op.node("Expand", {inputs[i], shape}), i);
  }
}

/// A part that begins at `offsets` and is `shape` large; -1: to the end.
void read_crop(Op& op) {
  const Ints shape = op.numbers("shape");
  const Ints offsets = op.numbers("offsets");
  if (shape.size() != offsets.size()) fail(ErrorKind::BadModel, "its shape and offsets differ");
  Ints axes;
  Ints ends;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    const bool fits = shape[i] >= -1 && offsets[i] >= 0 &&
                      offsets[i] <= kEnd - std::max<std::int64_t>(shape[i], 0);
    if (!fits) fail(ErrorKind::BadModel, "it takes {} from {} on", shape[i], offsets[i]);
    ends.push_back(shape[i] == -1 ? kEnd : offsets[i] + shape[i]);
  }
  op.set("Out", op.node("Slice", {op.in("X"), op.ints(offsets), op.ints(ends), op.ints(axes)}));
}

constexpr std::string_view kPut = "Axis|axis Reduce|reduce=assign Include_self|include_self=true";

constexpr auto kRows = std::to_array<OpRow>({
    {"masked_fill", "", "X Mask Value", "Out", "", read_masked_fill},
    {"masked_select", "", "X Mask", "Y", "", read_masked_select},
    {"index_sample", "", "X Index", "Out", "", read_index_sample},
    {"put_along_axis", "", "Input Index Value", "Result", kPut, read_put_along_axis, 18},
    {"index_add", "", "X Index AddValue", "Out", "axis=0", read_index_add, 16},
    {"index_put", "", "x indices value", "out", "accumulate=false", read_index_put, 16},
    {"repeat_interleave", "", "X / RepeatsTensor", "Out",
     "Repeats|repeats=1 dim|axis=0 RepeatsTensor=", read_repeat},
    {"repeat_interleave_with_tensor_index", "", "X RepeatsTensor", "Out",
     "dim|axis=0 RepeatsTensor=", read_repeat},
    {"broadcast_tensors", "", "X", "Out", "", read_broadcast},
    {"crop_tensor", "crop", "X shape:Shape,ShapeTensor offsets:Offsets,OffsetsTensor", "Out",
     "shape= offsets=", read_crop},
});

}  // namespace

std::span<const OpRow> place_rows() { return kRows; }

}  // namespace quench::paddle
