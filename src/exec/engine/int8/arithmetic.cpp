// SPDX-License-Identifier: Apache-2.0
// Sums, products and concatenations of bytes with different scales.
#include <algorithm>

#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

enum class Binary { Add, Mul };

class ByteBinary {
 public:
  ByteBinary(Binary kind, const ByteParams& a, const ByteParams& b, const ByteParams& out,
             const ByteStore& store)
      : kind_(kind),
        a_(byte_load(a, out.scale)),
        b_(byte_load(b, out.scale)),
        sum_(byte_sum(a, b, out)),
        store_(store),
        type_(out.type) {
    if (kind == Binary::Mul) {
      a_.scale = a.scale * b.scale / out.scale;
    } else {
      store_.zero = 0;
    }
  }

  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b) const {
    if (kind_ == Binary::Mul && is_gate(a, b)) return run_gated(a, a_, b, b_);
    if (kind_ == Binary::Mul && is_gate(b, a)) return run_gated(b, b_, a, a_);
    if (a.sizes() != b.sizes()) return run_alike(spread(a, b), spread(b, a));
    return run_alike(a, b);
  }

 private:
  /// One factor for each channel of an NHWC image.
  static bool is_gate(const at::Tensor& x, const at::Tensor& gate) {
    return x.dim() == 4 && gate.dim() == 4 && gate.size(2) == 1 && gate.size(3) == 1 &&
           gate.size(0) == x.size(0) && gate.size(1) == x.size(1) && x.numel() > gate.numel() &&
           x.is_contiguous(at::MemoryFormat::ChannelsLast);
  }

  at::Tensor run_gated(const at::Tensor& x, ByteLoad load, const at::Tensor& given,
                       const ByteLoad& gate) const {
    load.scale = a_.scale;
    const at::Tensor factors = given.contiguous();
    at::Tensor dst = new_alike(x, type_);
    const std::int64_t pixels = x.size(2) * x.size(3);
    const std::int64_t channels = x.size(1);
    std::vector<float> floats(static_cast<std::size_t>(factors.numel()));
    dequantize_loop(bytes_of(factors), gate.flip, gate.shift, 1.0F, floats.data(), factors.numel());
    const auto* src = bytes_of(x);
    auto* to = mutable_bytes_of(dst);
    const std::int64_t grain = std::max<std::int64_t>(kByteGrain / channels, 1);
    share(0, x.size(0) * pixels, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t n = begin / pixels;
        const std::int64_t stop = std::min(end, (n + 1) * pixels);
        mul_rows_loop(src + begin * channels, load, floats.data() + n * channels, store_,
                      to + begin * channels, {.rows = stop - begin, .columns = channels});
        begin = stop;
      }
    });
    return dst;
  }

  static at::Tensor spread(const at::Tensor& tensor, const at::Tensor& other) {
    const auto shape = at::infer_size(tensor.sizes(), other.sizes());
    const at::Tensor& like = tensor.numel() >= other.numel() ? tensor : other;
    return tensor.expand(shape).contiguous(like.suggest_memory_format());
  }

  at::Tensor run_alike(const at::Tensor& left, const at::Tensor& right) const {
    const at::Tensor a = left.is_non_overlapping_and_dense() ? left : left.contiguous();
    at::Tensor b = right;
    if (a.strides() != right.strides()) {
      b = at::empty_like(a, right.options(), at::MemoryFormat::Preserve);
      b.copy_(right);
    }
    at::Tensor dst = new_alike(a, type_);
    const auto* first = bytes_of(a);
    const auto* second = bytes_of(b);
    auto* to = mutable_bytes_of(dst);
    share(0, a.numel(), kByteGrain, [&](std::int64_t begin, std::int64_t end) {
      if (kind_ == Binary::Add) {
        add_loop(first + begin, second + begin, sum_, store_, to + begin, end - begin);
      } else {
        mul_loop(first + begin, a_, second + begin, b_, store_, to + begin, end - begin);
      }
    });
    return dst;
  }

  Binary kind_;
  ByteLoad a_;
  ByteLoad b_;
  ByteSum sum_;
  ByteStore store_;
  at::ScalarType type_;
};

template <Binary kKind>
Kernel make_binary(const OpContext& context) {
  const auto a = take_params(context, BinaryNode::kAScale, BinaryNode::kAZero,
                             context.input_dtype(BinaryNode::kA));
  const auto b = take_params(context, BinaryNode::kBScale, BinaryNode::kBZero,
                             context.input_dtype(BinaryNode::kB));
  const auto out = take_params(context, BinaryNode::kOutScale, BinaryNode::kOutZero,
                               context.input_dtype(BinaryNode::kA));
  if (!a || !b || !out) return refuse("its scales and zero points must be constants, one each");
  const FusedActivation activation = FusedActivation::of(context.node);
  const ByteStore store = clamped_store(*out, activation.name, activation.alpha, activation.beta);
  const ByteBinary kernel(kKind, *a, *b, *out, store);
  return sharing([kernel](Call& call) {
    call.set(0, kernel(call.in(BinaryNode::kA), call.in(BinaryNode::kB)));
  });
}

/// One input of a concatenation: as it is, or requantised by a lookup table.
struct Part {
  std::size_t input = 0;
  at::ScalarType type = at::kByte;
  std::optional<ByteTable> table;
};

/// NHWC images joined along their channels, requantised on the way.
at::Tensor concat_channels(const Call& call, const std::vector<Part>& parts, at::ScalarType type) {
  const at::Tensor& first = call.in(parts.front().input);
  Ints shape = first.sizes().vec();
  shape[1] = 0;
  for (const Part& part : parts) shape[1] += call.in(part.input).size(1);
  at::Tensor dst = new_tensor(shape, type, at::MemoryFormat::ChannelsLast);
  auto* to = mutable_bytes_of(dst);
  const std::int64_t stride = shape[1];
  const std::int64_t grain =
      std::max<std::int64_t>(4 * kByteGrain / std::max<std::int64_t>(stride, 1), 1);
  share(0, shape[0] * shape[2] * shape[3], grain, [&](auto begin, auto end) {
    std::int64_t channel = 0;
    for (const Part& part : parts) {
      const std::int64_t columns = call.in(part.input).size(1);
      const auto* src = bytes_of(call.in(part.input)) + begin * columns;
      std::uint8_t* rows = to + begin * stride + channel;
      channel += columns;
      if (part.table) {
        look_up_rows_loop(part.table->entries().data(), src, rows,
                          {.rows = end - begin, .columns = columns}, stride);
        continue;
      }
      copy_rows_loop(src, rows, {.rows = end - begin, .columns = columns}, stride);
    }
  });
  return dst;
}

/// Whether all are NHWC images of the same size, to be joined along the channels.
bool joins_channels(const Call& call, const std::vector<Part>& parts, std::int64_t axis) {
  const at::Tensor& first = call.in(parts.front().input);
  return first.dim() == 4 && (axis == 1 || axis == -3) &&
         std::ranges::all_of(parts, [&](const Part& part) {
           const at::Tensor& x = call.in(part.input);
           return x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
                  x.size(0) == first.size(0) && x.size(2) == first.size(2) &&
                  x.size(3) == first.size(3) && x.scalar_type() == part.type;
         });
}

Kernel make_concat(const OpContext& context) {
  const auto out = take_params(context, 0, 1, context.input_dtype(2));
  const std::int64_t axis = context.node.get_int("axis", 1);
  std::vector<Part> parts;
  for (std::size_t i = 2; out && i + 2 < context.node.inputs.size() + 2; i += 3) {
    const auto params = take_params(context, i + 1, i + 2, context.input_dtype(i));
    if (!params) return refuse("its scales and zero points must be constants, one each");
    const bool same =
        params->scale == out->scale && params->zero == out->zero && params->type == out->type;
    parts.push_back({.input = i, .type = params->type});
    if (!same) parts.back().table = requantising_table(*params, *out);
  }
  if (!out || parts.empty()) return refuse("its scales and zero points must be constants");
  return sharing([parts, axis, type = out->type](Call& call) {
    if (joins_channels(call, parts, axis)) {
      return call.set(0, concat_channels(call, parts, type));
    }
    std::vector<at::Tensor> bytes;
    for (const Part& part : parts) {
      const at::Tensor& x = call.in(part.input);
      bytes.push_back(part.table ? (*part.table)(x) : x);
    }
    call.set(0, concat_bytes(bytes, axis));
  });
}

}  // namespace

ByteSumFunction make_byte_sum(const ByteParams& a, const ByteParams& b, const ByteParams& out,
                              const ByteStore& store) {
  return ByteBinary(Binary::Add, a, b, out, store);
}

KernelInfo kernel_QLinearAdd() { return {.make = make_binary<Binary::Add>}; }
KernelInfo kernel_QLinearMul() { return {.make = make_binary<Binary::Mul>}; }
KernelInfo kernel_QLinearConcat() { return {.make = make_concat}; }

}  // namespace quench::exec
