// SPDX-License-Identifier: Apache-2.0
// MindIR's operators that make one number of many.
#include <array>

#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"

namespace quench::mindir {
namespace {

void reduce(Op& op, std::string_view type) {
  Ints axes = op.ints("axis", 1).value_or(Ints{});
  const bool keep = op.number("keep_dims", 0, 2) != 0;
  if (axes.empty()) {
    return op.set(op.make().node(type, {op.in(0)}, {{"keepdims", std::int64_t{keep}}}));
  }
  op.set(op.make().reduce(type, op.in(0), axes, keep));
}

void read_reduce(Op& op) { reduce(op, op.as()); }

/// MindSpore Lite's: which of them is a number.
void read_fusion(Op& op) {
  constexpr auto kModes =
      std::to_array<std::string_view>({"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                                       "ReduceSum", "ReduceSumSquare", "ReduceL1", "", "ReduceL2"});
  const std::int64_t mode = op.number("mode", 0);
  const bool known =
      mode >= 0 && mode < std::ssize(kModes) && !kModes[static_cast<std::size_t>(mode)].empty();
  if (!known || op.number("reduce_to_end", 0) != 0 || op.real("coeff", 1) != 1) {
    fail(ErrorKind::Unsupported, "its mode {}, or how far it reduces, is not read", mode);
  }
  reduce(op, kModes[static_cast<std::size_t>(mode)]);
}

void read_arg(Op& op) {
  const std::int64_t axis = op.number("axis", -1, 1);
  const ValueId index = op.make().node(op.as(), {op.in(0)},
                                       {{"axis", axis}, {"keepdims", op.number("keep_dims", 0)}});
  const DType to = dtype_of_argument(op.number("output_type", 34, 2));
  op.set(to == DType::Int64 || to == DType::Undefined ? index : op.make().cast(index, to));
}

void read_cumsum(Op& op) {
  const ValueId axis = op.make().scalar(static_cast<double>(op.number("axis", 0, 1)), DType::Int64);
  op.set(op.make().node(
      "CumSum", {op.in(0), axis},
      {{"exclusive", op.number("exclusive", 0, 2)}, {"reverse", op.number("reverse", 0, 3)}}));
}

void read_top_k(Op& op) {
  const Ints count = op.need_ints("k", 1);
  const auto found = op.make().nodes("TopK", {op.in(0), op.make().ints(count)}, 2);
  op.set_all({found[0], op.make().cast(found[1], DType::Int32)});
}

constexpr auto kRows = std::to_array<OpRow>({
    {"ReduceMean", read_reduce, "ReduceMean"},
    {"ReduceSum", read_reduce, "ReduceSum"},
    {"ReduceMax", read_reduce, "ReduceMax"},
    {"ReduceMin", read_reduce, "ReduceMin"},
    {"ReduceProd", read_reduce, "ReduceProd"},
    {"SumExt", read_reduce, "ReduceSum"},
    {"MeanExt", read_reduce, "ReduceMean"},
    {"ProdExt", read_reduce, "ReduceProd"},
    {"ReduceFusion", read_fusion},
    {"Argmax", read_arg, "ArgMax"},
    {"ArgMax", read_arg, "ArgMax"},
    {"ArgMaxFusion", read_arg, "ArgMax"},
    {"Argmin", read_arg, "ArgMin"},
    {"CumSum", read_cumsum},
    {"TopK", read_top_k},
    {"TopKFusion", read_top_k},
});

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace quench::mindir
