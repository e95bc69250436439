// SPDX-License-Identifier: Apache-2.0
// Products whose first factor gets its scale and zero point while the model runs.
#include <cmath>
#include <limits>
#include <mutex>

#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/product.h"
#include "exec/engine/int8/tail.h"
#include "exec/engine/int8/tile.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/quantize.h"
#include "exec/engine/kernels/rows.h"

namespace quench::exec {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

/// What turns the sums into results: nothing for 32-bit integers.
struct FloatTail {
  at::Tensor scales;  ///< of the weights, N or one
  at::Tensor bias;    ///< N floats, or undefined
  Fusion fusion;
};

/// What tiles do with their results; tensors may be undefined.
struct Behind {
  at::Tensor factors;   ///< of the rows: the result's shape but for the last dimension, one
  at::Tensor residual;  ///< added after that
};

/// Rows of bytes times constant bytes.
class DynamicLinear {
 public:
  DynamicLinear(const SignedWeights& weights, std::optional<FloatTail> tail)
      : sums_(weights.sums), weight_zero_(weights.zero), tail_(std::move(tail)) {
    depth_ = weights.data.size(0);
    width_ = weights.data.size(1);
    if (tail_ && weight_zero_ == 0 && can_sum_tiles() && depth_ <= kMaxTileSum &&
        is_plain(tail_->fusion)) {
      set_finish();
      columns_.emplace(pack_matrix(weights.data, false));
      return;
    }
    weights_ = IntegerWeights(weights.data, {{depth_, width_}, memory::data_type::s8, Tag::ab});
    bias_ = at::zeros({width_}, at::kInt);
    scales_ = at::ones({width_}, at::kFloat);
  }

  /// Whether our own tiles do the work, which the thread pool shares.
  bool has_tiles() const noexcept { return columns_.has_value(); }

  at::Tensor operator()(const at::Tensor& given, float scale, std::int32_t zero,
                        const Behind& behind = {}) {
    const at::Tensor& residual = behind.residual;
    if (given.dim() < 1 || given.size(-1) != depth_) {
      fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} columns",
           to_string(given.sizes().vec()), depth_);
    }
    const at::Tensor src = given.contiguous();
    Ints shape = src.sizes().vec();
    shape.back() = width_;
    at::Tensor dst = at::empty(shape, at::TensorOptions(tail_ ? at::kFloat : at::kInt));
    if (dst.numel() == 0) return dst;
    if (columns_) {
      if (!fits(dst, behind)) return followed((*this)(given, scale, zero), behind);
      multiply_tiles(src, dst, behind, {.scale = scale, .zero = zero, .type = src.scalar_type()});
      return dst;
    }
    prepare(scale, zero);
    if (behind.factors.defined() || !fits(dst, behind) ||
        (residual.defined() && !residual.is_contiguous())) {
      return followed((*this)(given, scale, zero), behind);
    }
    // Our own Gelu follows while the rows are still in the cache.
    constexpr std::int64_t kBlock = 128;
    const std::int64_t rows = src.numel() / depth_;
    const std::int64_t block = own_gelu() ? kBlock : rows;
    for (std::int64_t first = 0; first < rows; first += block) {
      multiply(src, dst, residual, {first, std::min(block, rows - first)});
    }
    return dst;
  }

 private:
  struct Rows {
    std::int64_t first, count;
  };

  static bool fits(const at::Tensor& dst, const Behind& behind) {
    const auto sizes = dst.sizes().slice(0, static_cast<std::size_t>(dst.dim() - 1));
    const at::Tensor& factors = behind.factors;
    const bool rows = !factors.defined() || (factors.dim() == dst.dim() && factors.size(-1) == 1 &&
                                             factors.sizes().slice(0, sizes.size()) == sizes &&
                                             factors.scalar_type() == at::kFloat);
    return rows && (!behind.residual.defined() || behind.residual.sizes() == dst.sizes());
  }

  /// One after the other, whatever their shapes.
  static at::Tensor followed(at::Tensor dst, const Behind& behind) {
    if (behind.factors.defined()) dst = dst * behind.factors;
    return behind.residual.defined() ? (dst + behind.residual).contiguous() : dst.contiguous();
  }

  /// Activations that our own tiles know.
  static bool is_plain(const Fusion& fusion) {
    return fusion.activation.empty() || fusion.activation == "relu" || fusion.activation == "gelu";
  }

  void set_finish() {
    const auto lanes = static_cast<std::size_t>(whole_lanes(width_));
    finish_.floats = true;
    finish_.gelu = own_gelu();
    finish_.most = std::numeric_limits<float>::infinity();
    finish_.least = tail_->fusion.activation == "relu" ? 0.0F : -finish_.most;
    finish_.scales.resize(lanes);
    finish_.shifts.resize(lanes);
    start_.resize(lanes);
    if (!tail_->bias.defined()) return;
    const float* bias = tail_->bias.data_ptr<float>();
    const bool one = tail_->bias.numel() == 1;
    for (std::int64_t i = 0; i < width_; ++i) {
      finish_.shifts[static_cast<std::size_t>(i)] = bias[one ? 0 : i];
    }
  }

  void multiply_tiles(const at::Tensor& src, const at::Tensor& dst, const Behind& behind,
                      const ByteParams& params) {
    const auto zero = static_cast<std::int32_t>(params.flipped_zero());
    const float* each = tail_->scales.data_ptr<float>();
    const std::size_t step = tail_->scales.numel() == 1 ? 0 : 1;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      start_[i] = -zero * static_cast<std::int32_t>(sums_[i]);
      finish_.scales[i] = each[i * step] * params.scale;
    }
    const std::int64_t rows = src.numel() / depth_;
    const auto dense = [](const at::Tensor& x) { return x.defined() ? x.contiguous() : x; };
    const at::Tensor residual = dense(behind.residual);
    const at::Tensor factors = dense(behind.factors);
    multiply_rows(*columns_, finish_,
                  {.count = rows,
                   .pieces = plain_rows(bytes_of(src), rows, columns_->form()),
                   .flip = params.type == at::kChar,
                   .start = start_.data(),
                   .residual = residual.defined() ? residual.data_ptr() : nullptr,
                   .dst = dst.data_ptr(),
                   .factors = factors.defined() ? factors.data_ptr<float>() : nullptr});
  }

  bool own_gelu() const { return tail_ && tail_->fusion.activation == "gelu"; }

  void multiply(const at::Tensor& src, const at::Tensor& dst, const at::Tensor& residual,
                const Rows& rows) {
    const std::int64_t is_signed = src.scalar_type() == at::kChar ? 1 : 0;
    const std::int64_t adds = residual.defined() ? 1 : 0;
    Plan& plan = plans_.get({rows.count, is_signed, adds},
                            [&] { return make_plan(rows.count, src.scalar_type(), adds != 0); });
    plan.src.set_data_handle(static_cast<std::uint8_t*>(src.data_ptr()) + rows.first * depth_);
    // Results are floats or 32-bit integers.
    auto* to = static_cast<float*>(dst.data_ptr()) + rows.first * width_;
    plan.dst.set_data_handle(to);
    if (adds != 0) {
      plan.residual.set_data_handle(residual.data_ptr<float>() + rows.first * width_);
    }
    plan.execute();
    if (!own_gelu()) return;
    constexpr std::int64_t kGeluGrain = 1 << 13;
    share(0, rows.count * width_, kGeluGrain,
          [=](std::int64_t begin, std::int64_t end) { gelu_loop(to + begin, end - begin); });
  }

  void prepare(float scale, std::int32_t zero) {
    auto* bias = bias_.data_ptr<std::int32_t>();
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      bias[i] = static_cast<std::int32_t>(-zero * sums_[i]);
    }
    if (!tail_) return;
    const float* each = tail_->scales.data_ptr<float>();
    float* scales = scales_.data_ptr<float>();
    const bool one = tail_->scales.numel() == 1;
    for (std::int64_t i = 0; i < width_; ++i) scales[i] = each[one ? 0 : i] * scale;
  }

  Plan make_plan(std::int64_t rows, at::ScalarType type, bool adds) {
    const memory::desc row({1, width_}, memory::data_type::f32, Tag::ab);
    const memory::desc whole({rows, width_}, memory::data_type::f32, Tag::ab);
    const memory::desc bias({1, width_}, memory::data_type::s32, Tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (weight_zero_ != 0) attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {weight_zero_});
    dnnl::post_ops ops;
    if (tail_) {
      ops.append_binary(dnnl::algorithm::binary_mul, row);
      if (tail_->bias.defined()) ops.append_binary(dnnl::algorithm::binary_add, row);
      if (adds) ops.append_binary(dnnl::algorithm::binary_add, whole);
      if (!tail_->fusion.activation.empty() && !own_gelu()) append_activation(ops, tail_->fusion);
    }
    attributes.set_post_ops(ops);
    const dnnl::matmul::desc desc(
        {{rows, depth_}, dnnl_type(type), Tag::ab},
        {{depth_, width_}, memory::data_type::s8, Tag::any}, bias,
        {{rows, width_}, tail_ ? memory::data_type::f32 : memory::data_type::s32, Tag::ab});
    const ThreadScope threads(rows * depth_ * width_ / 8);
    dnnl::matmul::primitive_desc pd(desc, attributes, dnnl_engine());
    Plan plan;
    plan.primitive = make_primitive<dnnl::matmul>(pd);
    plan.src = placeholder(pd.src_desc());
    plan.weights = weights_.as(pd.weights_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
    plan.args[DNNL_ARG_BIAS] = memory(bias, dnnl_engine(), bias_.data_ptr());
    const auto operand = [&](int index, const at::Tensor& tensor) {
      plan.args[DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1] =
          memory(row, dnnl_engine(), tensor.data_ptr());
    };
    if (tail_) operand(0, scales_);
    if (tail_ && tail_->bias.defined()) operand(1, tail_->bias);
    if (adds) {
      plan.residual = placeholder(whole);
      const int place = tail_->bias.defined() ? 2 : 1;
      plan.args[DNNL_ARG_ATTR_MULTIPLE_POST_OP(place) | DNNL_ARG_SRC_1] = plan.residual;
    }
    plan.bind(pd, {}, ResidualForm::Separate);
    return plan;
  }

  static constexpr std::int64_t kMaxTileSum = 1 << 15;

  std::optional<PackedColumns> columns_;  ///< for our own tiles, with what follows them
  Finish finish_;
  std::vector<std::int32_t> start_;
  std::vector<std::int64_t> sums_;
  std::int32_t weight_zero_;
  std::optional<FloatTail> tail_;
  std::int64_t depth_ = 0;
  std::int64_t width_ = 0;
  IntegerWeights weights_;
  at::Tensor bias_;    ///< what the source's zero point adds; written before each run
  at::Tensor scales_;  ///< of the sums; likewise
  PlanCache plans_;
};

float float_number(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.numel() == 1
             ? *tensor.data_ptr<float>()
             : static_cast<float>(to_double(tensor));
}

std::int32_t zero_point(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0;
  return static_cast<std::int32_t>(to_int(tensor));
}

struct DynamicInputs {
  std::size_t weight, zero, scale, bias;
};

/// The kernel's weights and tail; nothing when they are no constants.
std::shared_ptr<DynamicLinear> take_linear(const OpContext& context, const DynamicInputs& at) {
  const at::Tensor weight = context.constant(at.weight);
  const at::Tensor scale = context.constant(at.scale);
  const bool fits = context.fast && context.byte_products && weight.defined() &&
                    weight.dim() == 2 && weight.numel() > 0 && scale.defined() &&
                    (scale.numel() == 1 || scale.numel() == weight.size(1)) &&
                    (!context.has_input(at.bias) || context.constant(at.bias).defined());
  if (!fits) return nullptr;
  const auto weights = take_weights(context, at.weight, at.zero, 1);
  if (!weights) return nullptr;
  FloatTail tail;
  tail.scales = context.take_constant(at.scale).to(at::kFloat).reshape(-1).contiguous();
  if (context.has_input(at.bias)) {
    tail.bias = context.take_constant(at.bias).to(at::kFloat).reshape(-1).contiguous();
  }
  tail.fusion = Fusion::activation_of(context.node);
  return std::make_shared<DynamicLinear>(*weights, std::move(tail));
}

/// As exactly as can be.
Kernel exact_to_float(const OpContext& context) {
  const Fusion fusion = Fusion::activation_of(context.node);
  return [fusion](Call& call) {
    at::Tensor a = call.in(DynamicNode::kA).to(at::kDouble);
    at::Tensor b = call.in(DynamicNode::kB).to(at::kDouble);
    if (call.has(DynamicNode::kAZero)) a = a - call.in(DynamicNode::kAZero).to(at::kDouble);
    if (call.has(DynamicNode::kBZero)) b = b - call.in(DynamicNode::kBZero).to(at::kDouble);
    at::Tensor floats = at::matmul(a, b) * (call.in(DynamicNode::kAScale).to(at::kDouble) *
                                            call.in(DynamicNode::kBScale).to(at::kDouble));
    if (call.has(DynamicNode::kBias)) floats = floats + call.in(DynamicNode::kBias).to(at::kDouble);
    if (call.has(DynamicNode::kFactors))
      floats = floats * call.in(DynamicNode::kFactors).to(at::kDouble);
    if (call.has(DynamicNode::kResidual))
      floats = floats + call.in(DynamicNode::kResidual).to(at::kDouble);
    call.set(0, apply(fusion, floats, {}).to(at::kFloat));
  };
}

Kernel make_to_float(const OpContext& context) {
  const bool one_scale = context.input_rank(DynamicNode::kAScale) == 0 ||
                         context.input_rank(DynamicNode::kAScale) == 1;
  if (auto linear = one_scale ? take_linear(context, {.weight = DynamicNode::kB,
                                                      .zero = DynamicNode::kBZero,
                                                      .scale = DynamicNode::kBScale,
                                                      .bias = DynamicNode::kBias})
                              : nullptr) {
    Kernel kernel = [linear](Call& call) {
      if (call.in(DynamicNode::kAScale).numel() != 1) {
        fail(ErrorKind::Unsupported, "the first factor has {} scales; one is supported",
             call.in(DynamicNode::kAScale).numel());
      }
      call.set(0, (*linear)(call.in(DynamicNode::kA), float_number(call.in(DynamicNode::kAScale)),
                            zero_point(call.in(DynamicNode::kAZero)),
                            {.factors = call.in(DynamicNode::kFactors),
                             .residual = call.in(DynamicNode::kResidual)}));
    };
    kernel.shares = linear->has_tiles();
    return kernel;
  }
  context.taken.clear();
  return exact_to_float(context);
}

/// Inputs A (float), B, B's scale, B's zero point, bias.
Kernel make_dynamic_product(const OpContext& context) {
  auto linear = take_linear(context, {.weight = 1, .zero = 3, .scale = 2, .bias = 4});
  if (!linear) {
    context.taken.clear();
    return refuse("its weights must be a constant 8-bit matrix with one zero point");
  }
  Kernel kernel = [linear](Call& call) {
    const DynamicBytes x = dynamic_quantize(call.in(0));
    call.set(0, (*linear)(x.bytes, x.params.scale, x.params.zero));
  };
  kernel.shares = linear->has_tiles();
  return kernel;
}

}  // namespace

DynamicBytes dynamic_quantize(const at::Tensor& given) {
  const at::Tensor x = dense(given.to(at::kFloat));
  // Zero is part of the range.
  float low = 0;
  float high = 0;
  std::mutex mutex;
  const float* data = x.data_ptr<float>();
  share(0, x.numel(), kByteGrain, [&](std::int64_t begin, std::int64_t end) {
    const auto part = extent_loop(data + begin, end - begin);
    const std::lock_guard lock(mutex);
    low = std::min(low, part.first);
    high = std::max(high, part.second);
  });
  DynamicBytes result;
  result.params.scale = (high - low) / 255.0F;
  // All zeros: any scale will do, but none may be divided by.
  if (!(result.params.scale > 0)) result.params.scale = 1.0F;
  const float zero = std::nearbyint(std::clamp(-low / result.params.scale, 0.0F, 255.0F));
  result.params.zero = static_cast<std::int32_t>(zero);
  result.bytes = quantize_floats(x, result.params);
  return result;
}

std::optional<Kernel> make_integer_sums(const OpContext& context) {
  const at::Tensor weight = context.constant(1);
  if (!context.fast || !context.byte_products || !weight.defined() || weight.dim() != 2 ||
      weight.numel() == 0) {
    return std::nullopt;
  }
  const auto weights = take_weights(context, 1, 3, 1);
  if (!weights) return std::nullopt;
  auto linear = std::make_shared<DynamicLinear>(*weights, std::nullopt);
  return Kernel([linear](Call& call) {
    if (call.has(2) && call.in(2).numel() != 1) {
      fail(ErrorKind::Unsupported, "the first factor has {} zero points; one is supported",
           call.in(2).numel());
    }
    call.set(0, (*linear)(call.in(0), 1.0F, zero_point(call.in(2))));
  });
}

KernelInfo kernel_MatMulIntegerToFloat() { return {.make = make_to_float}; }
KernelInfo kernel_DynamicQuantizeMatMul() { return {.make = make_dynamic_product}; }

}  // namespace quench::exec
