// SPDX-License-Identifier: Apache-2.0
// Products of byte matrices: bias, activation and rounding in one primitive.
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/product.h"
#include "exec/engine/int8/tail.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

/// Every leading axis of the source is a row; the other factor is constant.
class IntegerLinear {
 public:
  /// `weights` are [K, N], or [N, K] when `transposed`.
  IntegerLinear(const ByteParams& source, IntegerTail tail, const SignedWeights& weights,
                bool transposed, const at::Tensor& bias)
      : source_(source), tail_(std::move(tail)) {
    depth_ = weights.data.size(transposed ? 1 : 0);
    width_ = weights.data.size(transposed ? 0 : 1);
    weights_ = IntegerWeights(
        weights.data, {{depth_, width_}, memory::data_type::s8, transposed ? Tag::ba : Tag::ab});
    weight_zero_ = weights.zero;
    bias_ = sums_bias(bias, tail_.sum_scales, weights.sums, source.zero);
  }

  void operator()(Call& call) {
    const at::Tensor& given = call.in(LayerNode::kX);
    if (given.dim() < 1 || given.size(-1) != depth_ || given.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} columns",
           c10::toString(given.scalar_type()), to_string(given.sizes().vec()), depth_);
    }
    const at::Tensor src = given.contiguous();
    Ints shape = src.sizes().vec();
    shape.back() = width_;
    at::Tensor dst = integer_destination(call, tail_, shape, at::MemoryFormat::Contiguous);
    multiply(src, call.in(LayerNode::kResidual), dst);
    call.set(0, tail_.out ? dst : dst.to(tail_.float_type));
  }

  at::Tensor rows(const at::Tensor& src) {
    at::Tensor dst = at::empty({src.size(0), width_}, at::TensorOptions(tail_.type()));
    multiply(src, {}, dst);
    return dst;
  }

 private:
  void multiply(const at::Tensor& src, const at::Tensor& residual, at::Tensor& dst) {
    if (dst.numel() == 0) return;
    const std::int64_t rows = src.numel() / depth_;
    Plan& plan = plans_.get(
        {rows}, [&] { return plan_of_tail([&](TailForm form) { return make_plan(rows, form); }); });
    at::Tensor floats = plan.open ? at::empty(dst.sizes(), at::kFloat) : dst;
    point(plan.src, src);
    point(plan.dst, floats);
    plan.execute();
    if (plan.open) dst = close_tail(tail_, std::move(floats), residual);
  }

  Plan make_plan(std::int64_t rows, TailForm form) {
    memory::desc bias;
    if (bias_.defined()) bias = {{1, width_}, dnnl_type(bias_.scalar_type()), Tag::ab};
    const dnnl::matmul::desc desc({{rows, depth_}, dnnl_type(source_.type), Tag::ab},
                                  {{depth_, width_}, memory::data_type::s8, Tag::any}, bias,
                                  {{rows, width_}, dnnl_type(tail_, form), Tag::ab});
    const ThreadScope threads(rows * depth_ * width_ / 8);
    dnnl::primitive_attr attributes = integer_attributes(tail_, 1, form);
    if (weight_zero_ != 0) attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {weight_zero_});
    dnnl::matmul::primitive_desc pd(desc, attributes, dnnl_engine());
    Plan plan;
    plan.primitive = form == TailForm::Open ? make_primitive<dnnl::matmul>(pd) : dnnl::matmul(pd);
    plan.src = placeholder(pd.src_desc());
    plan.weights = weights_.as(pd.weights_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
    if (bias_.defined()) plan.args[DNNL_ARG_BIAS] = memory(bias, dnnl_engine(), bias_.data_ptr());
    plan.bind(pd, {}, ResidualForm::Separate);
    return plan;
  }

  ByteParams source_;
  IntegerTail tail_;
  std::int64_t depth_ = 0;
  std::int64_t width_ = 0;
  IntegerWeights weights_;
  std::int32_t weight_zero_ = 0;
  at::Tensor bias_;
  PlanCache plans_;
};

/// The same by our own tiles.
class TiledLinear {
 public:
  TiledLinear(const ByteParams& source, const IntegerTail& tail, const at::Tensor& weights,
              bool transposed, LayerNumbers numbers)
      : source_(source),
        type_(tail.type()),
        float_type_(tail.float_type),
        numbers_(std::move(numbers)),
        columns_(pack_matrix(weights, transposed)) {}

  void operator()(Call& call) const {
    const at::Tensor& given = call.in(LayerNode::kX);
    const std::int64_t depth = columns_.form().length;
    if (given.dim() < 1 || given.size(-1) != depth || given.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} columns",
           c10::toString(given.scalar_type()), to_string(given.sizes().vec()), depth);
    }
    const at::Tensor src = given.contiguous();
    Ints shape = src.sizes().vec();
    shape.back() = columns_.columns();
    at::Tensor residual;
    if (numbers_.finish.add != AddBytes::None) {
      if (call.in(LayerNode::kResidual).sizes() != shape) {
        fail(ErrorKind::BadData, "the residual has shape {}, but the result {}",
             to_string(call.in(LayerNode::kResidual).sizes().vec()), to_string(shape));
      }
      residual = call.in(LayerNode::kResidual).contiguous();
    }
    const at::Tensor dst = new_tensor(shape, type_, at::MemoryFormat::Contiguous);
    multiply(src, residual, dst);
    call.set(0, type_ == at::kFloat && float_type_ != at::kFloat ? dst.to(float_type_) : dst);
  }

  at::Tensor rows(const at::Tensor& src) const {
    const at::Tensor dst =
        new_tensor({src.size(0), columns_.columns()}, type_, at::MemoryFormat::Contiguous);
    multiply(src, {}, dst);
    return dst;
  }

 private:
  void multiply(const at::Tensor& src, const at::Tensor& residual, const at::Tensor& dst) const {
    if (dst.numel() == 0) return;
    const RowForm form = columns_.form();
    const std::int64_t rows = src.numel() / form.length;
    multiply_rows(columns_, numbers_.finish,
                  {.count = rows,
                   .pieces = plain_rows(bytes_of(src), rows, form),
                   .flip = source_.type == at::kChar,
                   .start = numbers_.start.data(),
                   .residual = residual.defined() ? residual.data_ptr() : nullptr,
                   .dst = dst.data_ptr()});
  }

  ByteParams source_;
  at::ScalarType type_;
  at::ScalarType float_type_;
  LayerNumbers numbers_;
  PackedColumns columns_;
};

/// Two activations whose leading axes broadcast.
class IntegerBatched {
 public:
  IntegerBatched(const ByteParams& left, const ByteParams& right, IntegerTail tail)
      : left_(left), right_(right), tail_(std::move(tail)) {}

  void operator()(Call& call) {
    const std::int64_t rank = std::max(call.in(LayerNode::kX).dim(), call.in(LayerNode::kW).dim());
    if (std::min(call.in(LayerNode::kX).dim(), call.in(LayerNode::kW).dim()) < 2 ||
        rank > kMaxRank) {
      fail(ErrorKind::Unsupported, "integer products need operands of 2 to {} axes", kMaxRank);
    }
    const at::Tensor left = dense(call.in(LayerNode::kX), rank);
    // oneDNN's second factor is signed.
    const at::Tensor bytes = dense(call.in(LayerNode::kW), rank);
    const at::Tensor right =
        right_.type == at::kByte ? at::bitwise_xor(bytes, 0x80).view(at::kChar) : bytes;
    const Ints shape = product_shape(left, right);
    at::Tensor dst = at::empty(shape, at::TensorOptions(tail_.type()));
    if (dst.numel() != 0) {
      Ints key = left.sizes().vec();
      for (const at::IntArrayRef part : {left.strides(), right.sizes(), right.strides()}) {
        key.insert(key.end(), part.begin(), part.end());
      }
      Plan& plan = plans_.get(key, [&] {
        return plan_of_tail([&](TailForm form) { return make_plan(left, right, dst, form); });
      });
      at::Tensor floats = plan.open ? at::empty(shape, at::kFloat) : dst;
      point(plan.src, left);
      point(plan.weights, right);
      point(plan.dst, floats);
      plan.execute();
      if (plan.open) dst = close_tail(tail_, std::move(floats), {});
    }
    call.set(0, tail_.out ? dst : dst.to(tail_.float_type));
  }

 private:
  static constexpr std::int64_t kMaxRank = 5;

  /// With leading axes of size 1 and matrices that oneDNN reads as they lie.
  static at::Tensor dense(const at::Tensor& tensor, std::int64_t rank) {
    at::Tensor result = tensor;
    while (result.dim() < rank) result = result.unsqueeze(0);
    const bool rows = result.stride(-1) == 1 && result.stride(-2) >= result.size(-1);
    const bool columns = result.stride(-2) == 1 && result.stride(-1) >= result.size(-2);
    return rows || columns ? result : result.contiguous();
  }

  static Ints product_shape(const at::Tensor& left, const at::Tensor& right) {
    Ints shape = left.sizes().vec();
    bool fits = left.size(-1) == right.size(-2);
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
      const std::int64_t other = right.size(static_cast<std::int64_t>(i));
      fits = fits && (shape[i] == other || shape[i] == 1 || other == 1);
      shape[i] = std::max(shape[i], other);
    }
    if (!fits) {
      fail(ErrorKind::BadData, "matrices of shapes {} and {} cannot be multiplied",
           to_string(left.sizes().vec()), to_string(right.sizes().vec()));
    }
    shape.back() = right.size(-1);
    return shape;
  }

  static memory::desc bytes_desc(const at::Tensor& tensor) {
    return {tensor.sizes().vec(), dnnl_type(tensor.scalar_type()), tensor.strides().vec()};
  }

  Plan make_plan(const at::Tensor& left, const at::Tensor& right, const at::Tensor& dst,
                 TailForm form) {
    dnnl::primitive_attr attributes =
        integer_attributes(tail_, static_cast<int>(dst.dim()) - 1, form);
    if (left_.zero != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {left_.zero});
    const std::int32_t zero = right_.type == at::kByte ? right_.zero - 128 : right_.zero;
    if (zero != 0) attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {zero});
    const dnnl::matmul::desc desc(bytes_desc(left), bytes_desc(right),
                                  {dst.sizes().vec(), dnnl_type(tail_, form), dst.strides().vec()});
    const ThreadScope threads(dst.numel() * left.size(-1) / 8);
    dnnl::matmul::primitive_desc pd(desc, attributes, dnnl_engine());
    Plan plan;
    plan.primitive = form == TailForm::Open ? make_primitive<dnnl::matmul>(pd) : dnnl::matmul(pd);
    plan.src = placeholder(pd.src_desc());
    plan.weights = placeholder(pd.weights_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
    plan.bind(pd, {}, ResidualForm::Separate);
    return plan;
  }

  ByteParams left_;
  ByteParams right_;
  IntegerTail tail_;
  PlanCache plans_;
};

std::optional<Kernel> make_batched(const OpContext& context, const ByteParams& source) {
  if (context.has_input(LayerNode::kBias) || context.has_input(LayerNode::kResidual) ||
      context.input_rank(LayerNode::kX) < 2 || context.input_rank(LayerNode::kW) < 2) {
    return std::nullopt;
  }
  auto tail = take_tail(context, source);
  const auto right = take_params(context, LayerNode::kWScale, LayerNode::kWZero,
                                 context.input_dtype(LayerNode::kW));
  if (!tail || !right) return std::nullopt;
  auto kernel = std::make_shared<IntegerBatched>(source, *right, std::move(*tail));
  return Kernel([kernel](Call& call) { (*kernel)(call); });
}

}  // namespace

RowsFunction make_integer_rows(const ByteParams& source, const IntegerTail& tail,
                               const SignedWeights& weights, const at::Tensor& bias) {
  if (auto numbers = layer_numbers(source, tail, weights, bias)) {
    auto own =
        std::make_shared<TiledLinear>(source, tail, weights.data, false, std::move(*numbers));
    return [own](const at::Tensor& rows) { return own->rows(rows); };
  }
  auto linear = std::make_shared<IntegerLinear>(source, tail, weights, false, bias);
  return [linear](const at::Tensor& rows) { return linear->rows(rows); };
}

std::optional<Kernel> make_integer_matmul(const OpContext& context) {
  if (!context.fast || !context.byte_products) return std::nullopt;
  if (context.has_input(LayerNode::kBias) && !context.constant(LayerNode::kBias).defined())
    return std::nullopt;
  const auto source = take_params(context, LayerNode::kXScale, LayerNode::kXZero,
                                  context.input_dtype(LayerNode::kX));
  if (!source) return std::nullopt;
  const at::Tensor weight = context.constant(LayerNode::kW);
  if (!weight.defined()) return make_batched(context, *source);
  if (weight.dim() != 2 || weight.numel() == 0) return std::nullopt;
  const bool transposed = context.node.get_int("transB", 0) != 0;
  auto tail = take_tail(context, *source);
  const auto weights = take_weights(context, LayerNode::kW, LayerNode::kWZero, transposed ? 0 : 1);
  if (!tail || !weights) return std::nullopt;
  const at::Tensor bias = context.take_constant(LayerNode::kBias);
  if (auto numbers = layer_numbers(*source, *tail, *weights, bias)) {
    auto own = std::make_shared<TiledLinear>(*source, *tail, weights->data, transposed,
                                             std::move(*numbers));
    return sharing([own](Call& call) { (*own)(call); });
  }
  auto kernel =
      std::make_shared<IntegerLinear>(*source, std::move(*tail), *weights, transposed, bias);
  return Kernel([kernel](Call& call) { (*kernel)(call); });
}

}  // namespace quench::exec
