// SPDX-License-Identifier: Apache-2.0
// Averages of bytes, and Softmax.
#include "exec/engine/kernels/pool.h"

#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

struct Grids {
  ByteGrid in;
  ByteGrid out;
};

std::optional<Grids> take_grids(const OpContext& context) {
  const auto in = take_grid(context, 1, 2, context.input_dtype(0));
  const auto out = take_grid(context, 3, 4, context.input_dtype(0));
  if (!in || !out) return std::nullopt;
  return Grids{.in = *in, .out = *out};
}

/// The averages of each channel of an NHWC image, in one pass.
at::Tensor average_channels(const at::Tensor& x, const Grids& grids) {
  const RowShape shape{.rows = x.size(2) * x.size(3), .columns = x.size(1)};
  at::Tensor dst =
      new_tensor({x.size(0), x.size(1), 1, 1}, grids.out.type, at::MemoryFormat::Contiguous);
  const auto* src = bytes_of(x);
  auto* to = mutable_bytes_of(dst);
  const auto count = static_cast<double>(shape.rows);
  const auto shift = static_cast<double>(grids.in.flipped_zero()) * count;
  const double scale = static_cast<double>(grids.in.scale) / count;
  const ByteStore store = byte_store(grids.out);
  const std::int64_t grain =
      std::max<std::int64_t>(4 * kByteGrain / (shape.rows * shape.columns), 1);
  at::parallel_for(0, x.size(0), grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> sums(static_cast<std::size_t>(shape.columns));
    std::vector<float> means(sums.size());
    for (std::int64_t n = begin; n < end; ++n) {
      std::ranges::fill(sums, 0);
      sum_rows_loop(src + n * shape.rows * shape.columns, grids.in.flip(), shape, sums.data());
      for (std::size_t c = 0; c < sums.size(); ++c) {
        means[c] = static_cast<float>((static_cast<double>(sums[c]) - shift) * scale);
      }
      quantize_loop(means.data(), grids.out.scale, store, to + n * shape.columns, shape.columns);
    }
  });
  return dst;
}

Kernel make_global_average(const OpContext& context) {
  const auto grids = take_grids(context);
  if (!grids) return refuse("its scales and zero points must be constants, one each");
  if (context.node.get_int("channels_last", 0) != 0)
    return refuse("channels_last is not supported");
  return [grids = *grids](Call& call) {
    const at::Tensor& given = call.in(0);
    constexpr std::int64_t kMaxPixels = 1 << 22;
    if (given.dim() != 4 || given.numel() == 0 || given.size(2) * given.size(3) > kMaxPixels) {
      const at::Tensor real = dequantize_bytes(given, grids.in);
      Ints axes(static_cast<std::size_t>(std::max<std::int64_t>(given.dim() - 2, 0)));
      for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i) + 2;
      return call.set(0, quantize_floats(at::mean(real, axes, true), grids.out));
    }
    call.set(0, average_channels(given.contiguous(kNhwc), grids));
  };
}

/// Through floats between exact conversions: the window sums of bytes are exact in them.
Kernel through_floats(const OpContext& context, std::string_view op, std::int64_t opset) {
  const auto grids = take_grids(context);
  if (!grids) return refuse("its scales and zero points must be constants, one each");
  const auto info = find_kernel("", op);
  OpContext inner{.graph = context.graph, .node = context.node};
  inner.opset = opset;
  inner.fast = context.fast;
  Kernel kernel = info->make(inner);
  if (!kernel.run) return kernel;
  return [run = std::move(kernel.run), grids = *grids](Call& call) {
    std::vector<at::Tensor> slots = {dequantize_bytes(call.in(0), grids.in), at::Tensor()};
    const std::array<int, 1> in = {0};
    const std::array<int, 1> out = {1};
    Call real(slots, in, out);
    run(real);
    call.set(0, quantize_floats(slots[1], grids.out));
  };
}

Kernel make_average(const OpContext& context) {
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
