// SPDX-License-Identifier: Apache-2.0
// Averages of bytes, and Softmax.
#include "exec/engine/kernels/pool.h"

#include <array>
#include <cmath>

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

/// Through floats between exact conversions: the window sums of bytes are exact in them.
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

bool is_same(const InOut& params) {
  return params.in.scale == params.out.scale && params.in.zero == params.out.zero &&
         params.in.type == params.out.type;
}

/// Averages over windows of an NHWC image.
class WindowAverage {
 public:
  WindowAverage(const OpContext& context, const InOut& params)
      : window_(context.node, context.node.get_ints("kernel_shape").size()),
        count_pads_(context.node.get_int("count_include_pad", 0) != 0),
        away_(context.node.get_int("halves_away", 0) != 0 && is_same(params)),
        params_(params) {}

  /// Nothing where a window may lie outside the image.
  std::optional<at::Tensor> operator()(const at::Tensor& given) const {
    if (given.dim() != 4 || given.numel() == 0) return std::nullopt;
    const at::Tensor x = given.contiguous(kNhwc);
    const Ints pads = window_.pads_for(x.sizes().slice(2), window_.kernel);
    Ints shape = x.sizes().vec();
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t room = shape[i + 2] + pads[i] + pads[i + 2] - window_.kernel[i];
      if (room < 0 || std::max(pads[i], pads[i + 2]) >= window_.kernel[i]) return std::nullopt;
      shape[i + 2] = room / window_.strides[i] + 1;
    }
    at::Tensor dst = new_tensor(shape, params_.out.type, kNhwc);
    auto* to = mutable_bytes_of(dst);
    const std::int64_t lines = shape[0] * shape[2];
    const std::int64_t work = shape[3] * shape[1] * window_.kernel[0] * window_.kernel[1];
    const std::int64_t grain = std::max<std::int64_t>(4 * kByteGrain / work, 1);
    share(0, lines, grain, [&](std::int64_t begin, std::int64_t end) {
      Row row(x.size(1));
      for (std::int64_t line = begin; line < end; ++line) {
        for (std::int64_t i = 0; i < shape[3]; ++i) {
          const Place place{.y = line % shape[2] * window_.strides[0] - pads[0],
                            .x = i * window_.strides[1] - pads[1]};
          average(x, line / shape[2], place, row);
          quantize_loop(row.means.data(), params_.out.scale, byte_store(params_.out),
                        to + (line * shape[3] + i) * shape[1], shape[1]);
        }
      }
    });
    return dst;
  }

 private:
  struct Row {
    explicit Row(std::int64_t channels)
        : sums(static_cast<std::size_t>(channels)), means(sums.size()) {}
    std::vector<std::int32_t> sums;
    std::vector<float> means;
  };
  struct Place {
    std::int64_t y, x;
  };

  void average(const at::Tensor& x, std::int64_t image, Place at, Row& row) const {
    const std::int64_t channels = x.size(1);
    const std::int64_t width = x.size(3);
    const std::int64_t top = std::max<std::int64_t>(at.y, 0);
    const std::int64_t bottom = std::min(at.y + window_.kernel[0], x.size(2));
    const std::int64_t left = std::max<std::int64_t>(at.x, 0);
    const std::int64_t pixels = std::min(at.x + window_.kernel[1], width) - left;
    const auto* src = bytes_of(x) + (image * x.size(2) * width + left) * channels;
    std::ranges::fill(row.sums, 0);
    for (std::int64_t y = top; y < bottom; ++y) {
      sum_rows_loop(src + y * width * channels, params_.in.flip(),
                    {.rows = pixels, .columns = channels}, row.sums.data());
    }
    const auto there = static_cast<double>((bottom - top) * pixels);
    const double count =
        count_pads_ ? static_cast<double>(window_.kernel[0] * window_.kernel[1]) : there;
    const double shift = static_cast<double>(params_.in.flipped_zero()) * there;
    const double scale = static_cast<double>(params_.in.scale) / count;
    for (std::size_t c = 0; c < row.sums.size(); ++c) {
      row.means[c] = static_cast<float>((static_cast<double>(row.sums[c]) - shift) * scale);
    }
    if (away_) round_away(row, there, count);
  }

  /// Means that are whole steps already.
  void round_away(Row& row, double there, double count) const {
    const double flip = params_.in.flip();
    for (std::size_t c = 0; c < row.sums.size(); ++c) {
      const double mean = (static_cast<double>(row.sums[c]) - flip * there) / count;
      row.means[c] = static_cast<float>(std::round(mean) - params_.in.zero) * params_.in.scale;
    }
  }

  Window window_;
  bool count_pads_;
  bool away_;  ///< halves of the bytes themselves are rounded away from zero
  InOut params_;
};

Kernel make_average(const OpContext& context) {
  constexpr std::int64_t kNewest = 19;
  Kernel floats = through_floats(context, "AveragePool", kNewest);
  const Ints kernel = context.node.get_ints("kernel_shape");
  const Ints dilations = context.node.get_ints("dilations");
  const bool plain = std::ranges::all_of(dilations, [](auto each) { return each == 1; });
  const std::vector<std::size_t> taken = context.taken;
  const auto params = take_both(context);
  context.taken = taken;
  constexpr std::int64_t kMaxWindow = 1 << 22;  // sums of bytes stay below 2^30
  if (!floats.run || !params || kernel.size() != 2 || !plain || kernel[0] > kMaxWindow ||
      kernel[1] > kMaxWindow / kernel[0] || context.node.get_int("ceil_mode", 0) != 0) {
    return floats;
  }
  return sharing(
      [average = WindowAverage(context, *params), run = std::move(floats.run)](Call& call) {
        auto result = average(call.in(0));
        if (!result) return run(call);
        call.set(0, std::move(*result));
      });
}

/// Softmax of rows of bytes: exponentials of the distance to the largest are looked up.
class ByteSoftmax {
 public:
  explicit ByteSoftmax(const InOut& params) : params_(params) {
    for (std::size_t i = 0; i < powers_.size(); ++i) {
      powers_[i] = static_cast<float>(
          std::exp(-static_cast<double>(i) * static_cast<double>(params.in.scale)));
    }
  }

  at::Tensor operator()(const at::Tensor& given) const {
    const at::Tensor x = given.contiguous();
    at::Tensor dst = new_tensor(x.sizes(), params_.out.type, at::MemoryFormat::Contiguous);
    const std::int64_t columns = x.size(-1);
    if (x.numel() == 0) return dst;
    const auto* src = bytes_of(x);
    auto* to = mutable_bytes_of(dst);
    const std::int64_t grain = std::max<std::int64_t>(kByteGrain / 4 / columns, 1);
    share(0, x.numel() / columns, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> row(static_cast<std::size_t>(columns));
      for (std::int64_t i = begin; i < end; ++i) {
        const float sum = exponentials(src + i * columns, row);
        quantize_loop(row.data(), params_.out.scale * sum, byte_store(params_.out),
                      to + i * columns, columns);
      }
    });
    return dst;
  }

 private:
  /// Returns their sum.
  float exponentials(const std::uint8_t* src, std::vector<float>& row) const {
    const std::uint8_t flip = params_.in.flip();
    int most = 0;
    for (std::size_t i = 0; i < row.size(); ++i) most = std::max<int>(most, src[i] ^ flip);
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = powers_[static_cast<std::size_t>(most - (src[i] ^ flip))];
      sum += static_cast<double>(row[i]);
    }
    return static_cast<float>(sum);
  }

  InOut params_;
  std::array<float, 256> powers_{};
};

Kernel make_softmax(const OpContext& context) {
  // ONNX Runtime's operator says which opset's meaning its axis has.
  const std::int64_t opset = context.node.get_int("opset", 13);
  const std::int64_t axis = context.node.get_int("axis", opset < 13 ? 1 : -1);
  Kernel floats = through_floats(context, "Softmax", opset);
  const std::vector<std::size_t> taken = context.taken;
  const auto params = take_both(context);
  context.taken = taken;
  if (!floats.run || !params) return floats;
  return sharing([softmax = ByteSoftmax(*params), axis, run = std::move(floats.run)](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.dim() == 0 || (axis != -1 && axis != x.dim() - 1)) return run(call);
    call.set(0, softmax(x));
  });
}

}  // namespace

KernelInfo kernel_QLinearGlobalAveragePool() { return {.make = make_global_average}; }
KernelInfo kernel_QLinearAveragePool() { return {.make = make_average}; }
KernelInfo kernel_QLinearSoftmax() { return {.make = make_softmax}; }

}  // namespace quench::exec
