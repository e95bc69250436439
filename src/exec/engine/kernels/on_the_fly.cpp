// SPDX-License-Identifier: Apache-2.0
// Products whose weights stay packed in memory: a few rows at a time become floats and are used.
#include <malloc.h>

#include "base/file.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/program.h"
#include "quant/packed_rows.h"

namespace quench::exec {
namespace {

/// Floats that are expanded at a time: they stay in the cache until they have been multiplied.
constexpr std::int64_t kTile = 128 * 1024;

/// Constants in row order: [rows, everything else].
at::Tensor by_rows(const at::Tensor& tensor, std::int64_t rows) {
  if (rows == 1 && tensor.dim() == 2) return tensor.t().contiguous();
  return tensor.contiguous();
}

/// One number for each row and group, from a scalar, one a row, or [groups, rows] in either order.
template <typename T>
std::vector<T> per_row(const at::Tensor& tensor, std::int64_t rows, std::int64_t row_axis) {
  at::Tensor spread = tensor.to(c10::CppTypeToScalarType<T>::value);
  if (spread.numel() == 1) {
    spread = spread.reshape({1}).expand({rows});
  } else if (spread.dim() == 2) {
    spread = by_rows(spread, row_axis);
  }
  spread = spread.contiguous();
  return {spread.data_ptr<T>(), spread.data_ptr<T>() + spread.numel()};
}

std::shared_ptr<const quant::PackedRows> pack_rows(const at::Tensor& integers,
                                                   quant::RowParams params) {
  const auto count = static_cast<std::size_t>(integers.numel());
  const std::int64_t rows = integers.size(0);
  if (integers.scalar_type() == at::kShort) {
    return std::make_shared<quant::PackedRows>(std::span(integers.data_ptr<std::int16_t>(), count),
                                               rows, std::move(params));
  }
  return std::make_shared<quant::PackedRows>(std::span(integers.data_ptr<std::int8_t>(), count),
                                             rows, std::move(params));
}

/// Null where scales and zero points do not fit the weight: the node may come from a file.
std::shared_ptr<const quant::PackedRows> pack(const OpContext& context, const at::Tensor& weight) {
  const std::int64_t axis = context.node.get_int("rows", 0);
  const std::int64_t block = context.node.get_int("block", 0);
  const at::Tensor integers = by_rows(weight, axis);
  const std::int64_t rows = integers.size(0);
  quant::RowParams params;
  params.group = block > 0 ? block : std::max<std::int64_t>(1, integers.numel() / rows);
  params.scales = per_row<float>(context.take_constant(OnTheFlyNode::kScale), rows, axis);
  if (context.has_input(OnTheFlyNode::kZero)) {
    params.zero_points =
        per_row<std::int32_t>(context.take_constant(OnTheFlyNode::kZero), rows, axis);
  }
  const std::int64_t groups = (integers.numel() / rows + params.group - 1) / params.group;
  const auto num_params = static_cast<std::size_t>(rows * groups);
  if (params.scales.size() != num_params ||
      (!params.zero_points.empty() && params.zero_points.size() != num_params)) {
    return nullptr;
  }
  const auto packed = pack_rows(integers, std::move(params));
  context.graph.constant(context.node.input(OnTheFlyNode::kWeight))->drop();
  return packed;
}

/// Copies of weights that lie between packed ones leave holes, which together would take more
/// memory than packing saves: their pages go back to the system.
void release_freed() {
#ifdef __GLIBC__
  (void)::malloc_trim(0);
#endif
}

/// Rows [begin, end) as floats.
at::Tensor expand(const quant::PackedRows& weight, std::int64_t begin, std::int64_t end) {
  at::Tensor rows = at::empty({end - begin, weight.columns()}, at::TensorOptions(at::kFloat));
  float* out = rows.data_ptr<float>();
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, weight.columns()));
  at::parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      weight.expand(row, out + (row - begin) * weight.columns());
    }
  });
  return rows;
}

/// A product that is computed in parts of the result, each with a tile of the weight.
class TiledProduct {
 public:
  TiledProduct(const OpContext& context, std::shared_ptr<const quant::PackedRows> weight)
      : weight_(std::move(weight)),
        is_conv_(context.node.get_string("product", "") == "convolution") {
    shape_ = context.graph.constant(context.node.input(OnTheFlyNode::kWeight))->shape();
    out_axis_ = context.node.get_int("out_axis", -1);
    alpha_ = context.node.get_float("alpha", 1.0F);
    beta_ = context.node.get_float("beta", 1.0F);
    const bool tiles = context.node.get_int("tiles", 1) != 0;
    const std::int64_t columns = std::max<std::int64_t>(1, weight_->columns());
    // Multiples of 16 channels, as the kernels like them.
    tile_ = tiles ? std::max<std::int64_t>(16, kTile / columns / 16 * 16) : weight_->rows();
    program_ = context.compile(**context.node.get<GraphBox>("body"));
  }

  void operator()(Call& call) {
    std::vector<at::Tensor> parts;
    for (std::int64_t begin = 0; begin < weight_->rows(); begin += tile_) {
      const std::int64_t end = std::min(weight_->rows(), begin + tile_);
      const std::vector<at::Tensor> inputs = {call.in(OnTheFlyNode::kOperand), tile(begin, end)};
      parts.push_back(program_->run(inputs)[0]);
    }
    at::Tensor out = parts.size() == 1 ? parts[0] : at::cat(parts, out_axis_);
    if (alpha_ != 1.0F) out = out * alpha_;
    if (call.has(OnTheFlyNode::kAdded)) out = out + added(call.in(OnTheFlyNode::kAdded), out.dim());
    call.set(0, out);
  }

 private:
  at::Tensor tile(std::int64_t begin, std::int64_t end) const {
    const at::Tensor rows = expand(*weight_, begin, end);
    if (!is_conv_) return rows.t();
    Ints shape = shape_;
    shape[0] = end - begin;
    return rows.reshape(shape);
  }

  at::Tensor added(const at::Tensor& bias, std::int64_t rank) const {
    if (!is_conv_) return beta_ == 1.0F ? bias : bias * beta_;
    Ints shape(static_cast<std::size_t>(rank), 1);
    shape[1] = bias.numel();
    return bias.reshape(shape);
  }

  std::shared_ptr<const quant::PackedRows> weight_;
  bool is_conv_;
  Ints shape_;
  std::int64_t out_axis_ = -1;
  std::int64_t tile_ = 0;
  float alpha_ = 1;
  float beta_ = 1;
  std::shared_ptr<Program> program_;
};

/// Only the rows that are looked up become floats.
at::Tensor look_up(const quant::PackedRows& table, const Ints& shape, const at::Tensor& indices) {
  Ints size = indices.sizes().vec();
  size.insert(size.end(), shape.begin() + 1, shape.end());
  at::Tensor out = at::empty(size, at::TensorOptions(at::kFloat));
  float* dst = out.data_ptr<float>();
  for (std::int64_t index : to_ints(indices)) {
    if (index < 0) index += table.rows();
    if (index < 0 || index >= table.rows()) {
      fail(ErrorKind::BadData, "index {} is outside the {} rows of the table", index, table.rows());
    }
    table.expand(index, dst);
    dst += table.columns();
  }
  return out;
}

Kernel make_on_the_fly(const OpContext& context) {
  at::Tensor integers = context.take_constant(OnTheFlyNode::kWeight);
  if (!integers.defined() || integers.numel() == 0) return refuse("its weight must be a constant");
  const Ints shape = integers.sizes().vec();
  const bool fits =
      (integers.scalar_type() == at::kChar || integers.scalar_type() == at::kShort) &&
      integers.dim() > 0 && context.constant(OnTheFlyNode::kScale).defined() &&
      (!context.has_input(OnTheFlyNode::kZero) || context.constant(OnTheFlyNode::kZero).defined());
  const auto weight = fits ? pack(context, integers) : nullptr;
  if (!weight) return refuse("its scales do not fit its weight");
  integers.reset();
  release_freed();
  if (context.node.get_string("product", "") == "table") {
    return [weight, shape](Call& call) {
      call.set(0, look_up(*weight, shape, call.in(OnTheFlyNode::kOperand)));
    };
  }
  if (context.node.get<GraphBox>("body") == nullptr) return refuse("it has no body");
  auto product = std::make_shared<TiledProduct>(context, weight);
  return [product](Call& call) { (*product)(call); };
}

}  // namespace

KernelInfo kernel_OnTheFly() { return {.make = make_on_the_fly}; }

}  // namespace quench::exec
