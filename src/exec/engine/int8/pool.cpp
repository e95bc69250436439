// SPDX-License-Identifier: Apache-2.0
// Averages of bytes, and Softmax.
#include "exec/engine/kernels/pool.h"

#include <array>

#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

struct InOut {
  ByteParams in;
  ByteParams out;
};

std::optional<InOut> take_both(const OpContext& context) {
  const auto in = take_params(context, UnaryNode::kXScale, UnaryNode::kXZero,
                              context.input_dtype(UnaryNode::kX));
  const auto out = take_params(context, UnaryNode::kOutScale, UnaryNode::kOutZero,
                               context.input_dtype(UnaryNode::kX));
  if (!in || !out) return std::nullopt;
  return InOut{.in = *in, .out = *out};
}

/// The averages of each channel of an NHWC image, in one pass.
/// Floats where there is no scale for them.
at::Tensor average_channels(const at::Tensor& x, const ByteParams& in,
                            const std::optional<ByteParams>& out) {
  const RowShape shape{.rows = x.size(2) * x.size(3), .columns = x.size(1)};
  at::Tensor dst = new_tensor({x.size(0), x.size(1), 1, 1}, out ? out->type : at::kFloat,
                              at::MemoryFormat::Contiguous);
  const auto* src = bytes_of(x);
  const auto count = static_cast<double>(shape.rows);
  const auto shift = static_cast<double>(in.flipped_zero()) * count;
  const double scale = static_cast<double>(in.scale) / count;
  const std::int64_t size = shape.rows * shape.columns;
  // A large image alone is shared by its rows.
  const std::int64_t parts =
      size >= 4 * kByteGrain && x.size(0) < pool_threads() ? pool_threads() : 1;
  const std::int64_t grain = std::max<std::int64_t>(4 * kByteGrain * parts / size, 1);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(x.size(0) * parts * shape.columns), 0);
  share(0, x.size(0) * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % parts * shape.rows / parts;
      const std::int64_t last = (i % parts + 1) * shape.rows / parts;
      sum_rows_loop(src + i / parts * size + first * shape.columns, in.flip(),
                    {.rows = last - first, .columns = shape.columns},
                    sums.data() + i * shape.columns);
    }
  });
  std::vector<float> means(static_cast<std::size_t>(shape.columns));
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      std::int64_t sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        sum += sums[static_cast<std::size_t>((n * parts + part) * shape.columns + c)];
      }
      means[static_cast<std::size_t>(c)] =
          static_cast<float>((static_cast<double>(sum) - shift) * scale);
    }
    if (out) {
      quantize_loop(means.data(), out->scale, byte_store(*out),
                    mutable_bytes_of(dst) + n * shape.columns, shape.columns);
    } else {
      std::ranges::copy(means, dst.data_ptr<float>() + n * shape.columns);
    }
  }
  return dst;
}

Kernel make_global_average(const OpContext& context) {
  const auto in = take_params(context, UnaryNode::kXScale, UnaryNode::kXZero,
                              context.input_dtype(UnaryNode::kX));
  const auto out = context.has_input(UnaryNode::kOutScale)
                       ? take_params(context, UnaryNode::kOutScale, UnaryNode::kOutZero,
                                     context.input_dtype(UnaryNode::kX))
                       : std::optional<ByteParams>();
  if (!in || (context.has_input(UnaryNode::kOutScale) && !out)) {
    return refuse("its scales and zero points must be constants, one each");
  }
  if (context.node.get_int("channels_last", 0) != 0)
    return refuse("channels_last is not supported");
  return sharing([in = *in, out](Call& call) {
    const at::Tensor& given = call.in(0);
    constexpr std::int64_t kMaxPixels = 1 << 22;
    if (given.dim() != 4 || given.numel() == 0 || given.size(2) * given.size(3) > kMaxPixels) {
      const at::Tensor floats = dequantize_bytes(given, in);
      Ints axes(static_cast<std::size_t>(std::max<std::int64_t>(given.dim() - 2, 0)));
      for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i) + 2;
      const at::Tensor mean = axes.empty() ? floats : at::mean(floats, axes, true);
      return call.set(0, out ? quantize_floats(mean, *out) : mean);
    }
    call.set(0, average_channels(given.contiguous(kNhwc), in, out));
  });
}

/// Through floats between exact conversions.
Kernel through_floats(const OpContext& context, std::string_view op, std::int64_t opset) {
  const auto params = take_both(context);
  if (!params) return refuse("its scales and zero points must be constants, one each");
  const auto info = find_kernel("", op);
  OpContext inner{.graph = context.graph, .node = context.node};
  inner.opset = opset;
  inner.fast = context.fast;
  Kernel kernel = info->make(inner);
  if (!kernel.run) return kernel;
  return [run = std::move(kernel.run), params = *params](Call& call) {
    std::vector<at::Tensor> slots = {dequantize_bytes(call.in(0), params.in), at::Tensor()};
    const std::array<int, 1> in = {0};
    const std::array<int, 1> out = {1};
    Call floats(slots, in, out);
    run(floats);
    call.set(0, quantize_floats(slots[1], params.out));
  };
}

/// Whether the window is the whole image, as at the end of most networks.
bool is_global(const OpContext& context) {
  const Node& node = context.node;
  const auto& shape = context.graph[node.input(0)].type.shape;
  const Window window(node, 2);
  return shape && shape->size() == 4 &&
         window.kernel == Ints{(*shape)[2].value, (*shape)[3].value} &&
         window.pads == Ints{0, 0, 0, 0} && window.dilations == Ints{1, 1} &&
         window.auto_pad == "NOTSET";
}

Kernel make_average(const OpContext& context) {
  if (is_global(context)) return make_global_average(context);
  constexpr std::int64_t kNewest = 19;
  return through_floats(context, "AveragePool", kNewest);
}

Kernel make_softmax(const OpContext& context) {
  // ONNX Runtime's operator says which opset's meaning its axis has.
  return through_floats(context, "Softmax", context.node.get_int("opset", 13));
}

}  // namespace

KernelInfo kernel_QLinearGlobalAveragePool() { return {.make = make_global_average}; }
KernelInfo kernel_QLinearAveragePool() { return {.make = make_average}; }
KernelInfo kernel_QLinearSoftmax() { return {.make = make_softmax}; }

}  // namespace quench::exec
