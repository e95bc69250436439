// SPDX-License-Identifier: Apache-2.0
// Paddle's arrays of tensors, which loops fill: tensors of equal shape, stacked in the first
// dimension. What no value has been written to is nothing.
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

ValueId place_of(Op& op) { return op.cast(op.reshape(op.in("I"), {-1}), DType::Int64); }

void read_create_array(Op&) {}

/// Behind those before its place; what stood there goes.
void read_write(Op& op) {
  const std::vector<std::string> out = op.names("Out");
  if (out.size() != 1) fail(ErrorKind::BadModel, "it writes {} arrays", out.size());
  const ValueId element = op.unsqueeze(op.in("X"), {0});
  const ValueId before = op.translator().find(out[0]);
  const ValueId place = place_of(op);
  const ValueId zero = op.ints({0});
  const ValueId next = op.node("Add", {place, op.ints({1})});
  if (before == kNoValue) {
    // The first place is 0; a loop's is that of its turn, and is taken off again.
    op.set("Out", op.node("Slice", {element, zero, next, zero}));
    return;
  }
  const ValueId head = op.node("Slice", {before, zero, place, zero});
  const ValueId tail = op.node("Slice", {before, next, op.ints({kEnd}), zero});
  op.set("Out", op.node("Concat", {head, element, tail}, {{"axis", std::int64_t{0}}}));
}

void read_read(Op& op) {
  const ValueId place = op.reshape(op.in("I"), {});
  op.set("Out", op.node("Gather", {op.in("X"), place}, {{"axis", std::int64_t{0}}}));
}

void read_length(Op& op) {
  const ValueId size = op.size_of(op.in("X"), 0);
  op.set("Out", op.rank("Out") == 0 ? op.reshape(size, {}) : op.reshape(size, {1}));
}

/// All of them, stacked or side by side.
void read_to_tensor(Op& op) {
  const ValueId all = op.in("X");
  const std::int64_t rank = op.need_rank("Out");
  const bool stack = op.flag("use_stack");
  std::int64_t axis = op.integer("axis");
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) fail(ErrorKind::BadModel, "it has no dimension {}", axis);
  ValueId turned = all;
  if (axis > 0) {
    std::vector<std::int64_t> perm;
    for (std::int64_t i = 1; i <= axis; ++i) perm.push_back(i);
    perm.push_back(0);
    for (std::int64_t i = axis + 1; i < rank + (stack ? 0 : 1); ++i) perm.push_back(i);
    turned = op.transpose(all, perm);
  }
  if (stack) {
    op.set("Out", turned);
    return;
  }
  const ValueId sizes = op.sizes(turned);
  const ValueId shape = op.node(
      "Concat", {op.slice(sizes, 0, 0, axis), op.ints({-1}), op.slice(sizes, 0, axis + 2, kEnd)},
      {{"axis", std::int64_t{0}}});
  op.set("Out", op.node("Reshape", {turned, shape}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"create_array", "", "", "Out", "", read_create_array},
    {"write_to_array", "array_write", "Array X I", "Out", "", read_write},
    {"read_from_array", "array_read", "X I", "Out", "", read_read},
    {"lod_array_length", "array_length", "X", "Out", "", read_length},
    {"tensor_array_to_tensor", "array_to_tensor", "X", "Out OutIndex", "axis=0 use_stack=false",
     read_to_tensor},
});

}  // namespace

std::span<const OpRow> array_rows() { return kRows; }

}  // namespace quench::paddle
