// SPDX-License-Identifier: Apache-2.0
// Reading at places that are values themselves.
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// Paddle gathers with flat indices; rows of a matrix with any.
void gather(const NodeWriter& node) {
  const std::int64_t rank = node.rank(0);
  std::int64_t axis = node.node.get_int("axis", 0);
  if (axis < 0) axis += rank;
  const Tensor* index = node.constant(1);
  if (index != nullptr && index->rank() == 0) {
    const auto at = static_cast<std::int32_t>((*node.ints("indices", 1))[0]);
    const std::int32_t most = 2147483647;
    node.op("slice")
        .in("Input", node.in())
        .out("Out", node.out())
        .set("axes", narrow({axis}))
        .set("starts", Ints{at})
        .set("ends", Ints{at == -1 ? most : at + 1})
        .set("infer_flags", Ints{1})
        .set("decrease_axis", narrow({axis}));
    return;
  }
  if (axis == 0 && rank == 2 && node.type(0).dtype == DType::Float32) {
    node.op("lookup_table_v2")
        .in("W", node.in(0))
        .in("Ids", node.in(1))
        .out("Out", node.out())
        .set("padding_idx", std::int64_t{-1});
    return;
  }
  if (node.rank(1) != 1) node.refuse("its indices are not a list");
  node.op("gather")
      .in("X", node.in(0))
      .in("Index", node.in(1))
      .out("Out", node.out())
      .set("axis", static_cast<std::int32_t>(axis));
}

void gather_nd(const NodeWriter& node) {
  if (node.node.get_int("batch_dims", 0) != 0) node.refuse("it has batch axes");
  node.op("gather_nd").in("X", node.in(0)).in("Index", node.in(1)).out("Out", node.out());
}

/// Rows that are replaced, or elements that are added to.
void scatter_nd(const NodeWriter& node) {
  const std::string how = node.node.get_string("reduction", "none");
  if (how == "add") {
    node.op("scatter_nd_add")
        .in("X", node.in(0))
        .in("Index", node.in(1))
        .in("Updates", node.in(2))
        .out("Out", node.out());
    return;
  }
  const auto& dims = node.type(1).shape;
  const bool rows = dims && dims->size() == 2 && dims->back().value == 1;
  if (how != "none" || !rows) node.refuse("it replaces other parts than rows");
  const std::string list = node.writer.temporary(node.in(1) + ".list", node.type(1));
  node.op("reshape2").in("X", node.in(1)).out("Out", list).set("shape", Ints{-1});
  node.op("scatter")
      .in("X", node.in(0))
      .in("Ids", list)
      .in("Updates", node.in(2))
      .out("Out", node.out())
      .set("overwrite", true);
}

void gather_elements(const NodeWriter& node) {
  node.op("take_along_axis")
      .in("Input", node.in(0))
      .in("Index", node.in(1))
      .out("Result", node.out())
      .set("Axis", static_cast<std::int32_t>(node.node.get_int("axis", 0)));
}

void grid_sample(const NodeWriter& node) {
  const std::string mode = node.node.get_string("mode", "bilinear");
  const bool nearest = mode == "nearest";
  if (!nearest && mode != "bilinear" && mode != "linear") node.refuse("Paddle has no such mode");
  node.op("grid_sampler")
      .in("X", node.in(0))
      .in("Grid", node.in(1))
      .out("Output", node.out())
      .set("mode", nearest ? "nearest" : "bilinear")
      .set("padding_mode", node.node.get_string("padding_mode", "zeros"))
      .set("align_corners", node.node.get_int("align_corners", 0) != 0);
}

}  // namespace

std::vector<WriteRow> index_rows() {
  return {
      {"Gather", gather},        {"GatherND", gather_nd},     {"GatherElements", gather_elements},
      {"ScatterND", scatter_nd}, {"GridSample", grid_sample},
  };
}

}  // namespace quench::paddle::write
