// SPDX-License-Identifier: Apache-2.0
// Rows of an 8-bit table that are read and dequantised: Gather, Cast, Sub of the rows' zero points
// and Mul by their scales become one GatherRowsNode.
#include <optional>

#include "exec/rewrites/patterns.h"

namespace quench::exec::rewrites {
namespace {

class GatherRows {
 public:
  GatherRows(Rewriter& rewriter, NodeId root) : rewriter_(rewriter), root_(root) {}

  bool run() {
    const Node* mul = rewriter_.as(root_, "Mul");
    if (mul == nullptr) return false;
    for (const std::size_t side : {0U, 1U}) {
      matcher_.emplace(rewriter_);
      if (takes_rows(mul->inputs[side]) && takes_scales(mul->inputs[1 - side])) return replace();
    }
    return false;
  }

 private:
  /// The table of a Gather of these indices (of any, for the first); kNoValue when it is none.
  ValueId table_of(ValueId value) {
    const Node* gather = matcher_->inner(value, "Gather");
    if (gather == nullptr || gather->get_int("axis", 0) != 0) return kNoValue;
    if (indices_ == kNoValue) indices_ = gather->inputs[1];
    return gather->inputs[1] == indices_ ? gather->inputs[0] : kNoValue;
  }

  /// Likewise, of bytes that are cast to float32.
  ValueId cast_table_of(ValueId value) {
    const Node* cast = matcher_->inner(value, "Cast");
    if (cast == nullptr || cast->get_int("to", 0) != static_cast<std::int64_t>(DType::Float32)) {
      return kNoValue;
    }
    return table_of(cast->inputs[0]);
  }

  bool takes_rows(ValueId value) {
    indices_ = kNoValue;
    zero_ = kNoValue;
    const Node* sub = rewriter_.maker_as(value, "Sub");
    if (sub == nullptr) {
      table_ = cast_table_of(value);
    } else {
      if (matcher_->inner(value, "Sub") == nullptr) return false;
      table_ = cast_table_of(sub->inputs[0]);
      zero_ = cast_table_of(sub->inputs[1]);
      if (zero_ == kNoValue) return false;
    }
    const Tensor* table = table_ == kNoValue ? nullptr : rewriter_.constant(table_);
    return table != nullptr && table->rank() == 2 &&
           (table->dtype() == DType::Int8 || table->dtype() == DType::UInt8) &&
           (zero_ == kNoValue || is_column(zero_, table->dtype()));
  }

  bool takes_scales(ValueId value) {
    scale_ = table_of(value);
    return scale_ != kNoValue && is_column(scale_, DType::Float32);
  }

  /// One element for each row of the table.
  bool is_column(ValueId id, DType dtype) const {
    const Tensor* tensor = rewriter_.constant(id);
    return tensor != nullptr && tensor->dtype() == dtype && tensor->rank() == 2 &&
           tensor->shape()[1] == 1 && tensor->shape()[0] == rewriter_.constant(table_)->shape()[0];
  }

  bool replace() {
    Node fused;
    fused.name = rewriter_.node(root_).name;
    fused.op_type = "GatherRows";
    fused.domain = kEngineDomain;
    fused.inputs =
        GatherRowsNode{.table = table_, .indices = indices_, .scales = scale_, .zeros = zero_}
            .inputs();
    fused.outputs = rewriter_.node(root_).outputs;
    rewriter_.replace(root_, std::move(fused), matcher_->taken());
    return true;
  }

  Rewriter& rewriter_;
  std::optional<Matcher> matcher_;
  NodeId root_;
  ValueId table_ = kNoValue;
  ValueId indices_ = kNoValue;
  ValueId scale_ = kNoValue;
  ValueId zero_ = kNoValue;
};

}  // namespace

bool fuse_gather_rows(Rewriter& rewriter, NodeId root) { return GatherRows(rewriter, root).run(); }

}  // namespace quench::exec::rewrites
