// SPDX-License-Identifier: Apache-2.0
// Paddle's reductions, searches and sorts.
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

/// Older programs give a result of no dimensions as one of one element.
void set_as_declared(Op& op, ValueId value, bool no_dims) {
  op.set("Out", no_dims && op.rank("Out") == 1 ? op.reshape(value, {1}) : value);
}

struct Axes {
  std::vector<std::int64_t> axes;  ///< empty: all
  bool keep;
};

Axes axes_of(Op& op) {
  Axes result{op.numbers("dim"), op.flag("keep_dim")};
  const auto rank = op.rank("X");
  if (op.flag("reduce_all") || (rank && std::ssize(result.axes) == *rank)) result.axes.clear();
  return result;
}

ValueId with_type(Op& op, ValueId value) {
  const std::int64_t number = op.integer("out_dtype");
  if (number < 0) {
    // Of truths and small integers there are sums of larger ones.
    const DType made = op.dtype("Out");
    return info(op.dtype("X")).is_float || made == op.dtype("X") ? value : op.cast(value, made);
  }
  return op.cast(value, dtype_of(static_cast<std::int32_t>(number)));
}

template <const char* kOpType>
void read_reduce(Op& op) {
  const Axes axes = axes_of(op);
  set_as_declared(op, op.reduce(kOpType, with_type(op, op.in("X")), axes.axes, axes.keep),
                  axes.axes.empty() && !axes.keep);
}

/// Of bool: any is the greatest, all the least.
template <const char* kOpType>
void read_logical(Op& op) {
  const Axes axes = axes_of(op);
  const ValueId number = op.cast(op.in("X"), DType::Int32);
  set_as_declared(op, op.cast(op.reduce(kOpType, number, axes.axes, axes.keep), DType::Bool),
                  axes.axes.empty() && !axes.keep);
}

void read_mean(Op& op) {
  set_as_declared(op, op.reduce("ReduceMean", op.in("X"), {}, false), true);
}

template <const char* kOpType>
void read_arg(Op& op) {
  ValueId x = op.in("X");
  std::vector<std::int64_t> axis = op.numbers("axis");
  const bool flatten = op.flag("flatten");
  if (flatten) x = op.reshape(x, {-1});
  ValueId found = op.node(kOpType, {x},
                          {{"axis", flatten || axis.empty() ? std::int64_t{0} : axis.front()},
                           {"keepdims", std::int64_t{op.flag("keepdims")}}});
  const TypeRow* row = type_row(static_cast<std::int32_t>(op.integer("dtype")));
  if (row != nullptr && row->dtype != DType::Int64) found = op.cast(found, row->dtype);
  set_as_declared(op, found, flatten && !op.flag("keepdims"));
}

void read_top_k(Op& op) {
  const ValueId k = op.as_value(op.list("k"));
  const auto found = op.nodes("TopK", {op.in("X"), k}, 2,
                              {{"axis", op.integer("axis")},
                               {"largest", std::int64_t{op.flag("largest")}},
                               {"sorted", std::int64_t{op.flag("sorted")}}});
  op.set("Out", found[0]);
  op.set("Indices", found[1]);
}

/// The k-th smallest: the last of the k smallest in order.
void read_kth_value(Op& op) {
  const std::int64_t axis = op.integer("axis");
  const std::int64_t k = op.integer("k");
  if (k < 1) fail(ErrorKind::BadModel, "it asks for the {}-th smallest element", k);
  const auto found = op.nodes("TopK", {op.in("X"), op.ints({k})}, 2,
                              {{"axis", axis}, {"largest", std::int64_t{0}}});
  const bool keep = op.flag("keepdim");
  const auto last = [&](ValueId value) {
    const ValueId part = op.slice(value, axis, k - 1, k);
    return keep ? part : op.squeeze(part, {axis});
  };
  op.set("Out", last(found[0]));
  op.set("Indices", last(found[1]));
}

void read_argsort(Op& op) {
  const std::int64_t axis = op.integer("axis");
  const auto found = op.nodes("TopK", {op.in("X"), op.size_of(op.in("X"), axis)}, 2,
                              {{"axis", axis},
                               {"largest", std::int64_t{op.flag("descending")}},
                               {"sorted", std::int64_t{1}}});
  op.set("Out", found[0]);
  op.set("Indices", found[1]);
}

void read_cumsum(Op& op) {
  ValueId x = op.in("X");
  std::int64_t axis = op.single("axis");
  if (op.flag("flatten")) {
    x = op.reshape(x, {-1});
    axis = 0;
  }
  op.set("Out", op.node("CumSum", {x, op.constant(Tensor::scalar(axis))},
                        {{"exclusive", std::int64_t{op.flag("exclusive")}},
                         {"reverse", std::int64_t{op.flag("reverse")}}}));
}

constexpr char kMean[] = "ReduceMean", kSum[] = "ReduceSum", kMax[] = "ReduceMax",
               kMin[] = "ReduceMin", kProd[] = "ReduceProd", kLogSumExp[] = "ReduceLogSumExp",
               kArgMax[] = "ArgMax", kArgMin[] = "ArgMin";

constexpr std::string_view kReduce = "X dim:";
constexpr std::string_view kReduceAttributes =
    "dim|axis=0 keep_dim|keepdim=false reduce_all=false out_dtype|dtype=-1";
constexpr std::string_view kArgAttributes = "axis=-1 keepdims=false flatten=false dtype=3";

constexpr auto kRows = std::to_array<OpRow>({
    {"reduce_mean", "mean", kReduce, "Out", kReduceAttributes, read_reduce<kMean>},
    {"reduce_sum", "sum", kReduce, "Out", kReduceAttributes, read_reduce<kSum>},
    {"reduce_max", "max", kReduce, "Out", kReduceAttributes, read_reduce<kMax>},
    {"reduce_min", "min", kReduce, "Out", kReduceAttributes, read_reduce<kMin>},
    {"reduce_amax", "amax", "X", "Out", kReduceAttributes, read_reduce<kMax>},
    {"reduce_amin", "amin", "X", "Out", kReduceAttributes, read_reduce<kMin>},
    {"reduce_prod", "prod", kReduce, "Out", kReduceAttributes, read_reduce<kProd>},
    {"reduce_any", "any", "X", "Out", kReduceAttributes, read_logical<kMax>},
    {"reduce_all", "all", "X", "Out", kReduceAttributes, read_logical<kMin>},
    {"logsumexp", "", "X", "Out", "dim|axis=0 keep_dim|keepdim=false reduce_all=false out_dtype=-1",
     read_reduce<kLogSumExp>},
    {"mean", "mean_all", "X", "Out", "", read_mean},
    {"arg_max", "argmax", "X axis:", "Out", kArgAttributes, read_arg<kArgMax>},
    {"arg_min", "argmin", "X axis:", "Out", kArgAttributes, read_arg<kArgMin>},
    {"top_k_v2", "topk", "X k:K", "Out Indices", "k=1 axis=-1 largest=true sorted=true",
     read_top_k},
    {"top_k", "-", "X k:K", "Out Indices", "k=1 axis=-1 largest=true sorted=true", read_top_k},
    {"argsort", "", "X", "Out Indices", "axis=-1 descending=false", read_argsort},
    {"kthvalue", "", "X", "Out Indices", "k=1 axis=-1 keepdim=false", read_kth_value},
    {"cumsum", "", "X axis:", "Out", "axis=-1 flatten=false exclusive=false reverse=false",
     read_cumsum},
});

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace quench::paddle
