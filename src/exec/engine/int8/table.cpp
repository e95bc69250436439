// SPDX-License-Identifier: Apache-2.0
// Functions of one byte, looked up.
#include <array>

#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/program.h"

namespace quench::exec {
namespace {

/// A table for each channel, the axis 1.
class ChannelTables {
 public:
  /// `results` are [256, channels], for the source's values from the least to the greatest.
  ChannelTables(at::ScalarType from, const at::Tensor& results)
      : from_(from), to_(results.scalar_type()), channels_(results.size(1)) {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const ByteTable table(from, results.select(1, c));
      entries_.insert(entries_.end(), table.entries().begin(), table.entries().end());
    }
  }

  at::Tensor operator()(const at::Tensor& given) const {
    if (given.scalar_type() != from_ || given.dim() < 2 || given.size(1) != channels_) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but {} with {} channels was expected",
           c10::toString(given.scalar_type()), to_string(given.sizes().vec()), c10::toString(from_),
           channels_);
    }
    const bool last = given.dim() == 4 && given.is_contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor x = last ? given : given.contiguous();
    at::Tensor dst = new_alike(x, to_);
    if (x.numel() == 0) return dst;
    const std::int64_t inner = x.numel() / (x.size(0) * channels_);
    const auto* src = bytes_of(x);
    auto* to = mutable_bytes_of(dst);
    if (last || inner == 1) {
      share(0, x.numel() / channels_, grain(channels_), [&](auto begin, auto end) {
        look_up_channels_loop(entries_.data(), channels_, src + begin * channels_,
                              to + begin * channels_, end - begin);
      });
    } else {
      share(0, x.size(0) * channels_, grain(inner), [&](auto begin, auto end) {
        for (auto plane = begin; plane < end; ++plane) {
          look_up_loop(entries_.data() + plane % channels_ * 256, src + plane * inner,
                       to + plane * inner, inner);
        }
      });
    }
    return dst;
  }

 private:
  static std::int64_t grain(std::int64_t each) {
    return std::max<std::int64_t>(kByteGrain / each, 1);
  }

  std::vector<std::uint8_t> entries_;
  at::ScalarType from_;
  at::ScalarType to_;
  std::int64_t channels_;
};

/// A float for each byte.
class FloatTable {
 public:
  /// `results` are 256 floats, for the source's values from the least to the greatest.
  FloatTable(at::ScalarType from, const at::Tensor& results) : from_(from) {
    const at::Tensor flat = results.contiguous();
    const std::size_t flip = from == at::kChar ? 0x80 : 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i ^ flip] = flat.data_ptr<float>()[i];
    }
  }

  at::Tensor operator()(const at::Tensor& given) const {
    if (given.scalar_type() != from_) {
      fail(ErrorKind::BadData, "the input is {}, but {} was expected",
           c10::toString(given.scalar_type()), c10::toString(from_));
    }
    const at::Tensor x = dense(given);
    at::Tensor dst = new_alike(x, at::kFloat);
    const auto* src = bytes_of(x);
    auto* to = dst.data_ptr<float>();
    share(0, x.numel(), kByteGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = entries_[src[i]];
    });
    return dst;
  }

 private:
  std::array<float, 256> entries_{};
  at::ScalarType from_;
};

/// Runs the node's body on every byte there is, for each channel where they differ.
Kernel make_table(const OpContext& context) {
  const auto* body = context.node.get<GraphBox>("body");
  const DType dtype = context.input_dtype(0);
  if (body == nullptr || (dtype != DType::UInt8 && dtype != DType::Int8)) {
    return refuse("a table needs a body and an 8-bit input");
  }
  const auto program = context.compile(**body);
  const at::ScalarType type = dtype == DType::Int8 ? at::kChar : at::kByte;
  const std::int64_t channels = context.node.get_int("channels", 0);
  at::Tensor inputs = all_bytes(type);
  if (channels > 0) {
    Ints shape(static_cast<std::size_t>(context.node.get_int("rank", 2)), 1);
    shape[0] = inputs.numel();
    shape[1] = channels;
    inputs = inputs.unsqueeze(1).expand({-1, channels}).reshape(shape);
  }
  const std::vector<at::Tensor> results = program->run({&inputs, 1});
  if (results.size() != 1 || !results[0].defined() || results[0].numel() != inputs.numel()) {
    return refuse("its body does not give one number for each");
  }
  if (channels > 0) {
    const ChannelTables tables(type, results[0].reshape({-1, channels}));
    return sharing([tables](Call& call) { call.set(0, tables(call.in(0))); });
  }
  if (results[0].scalar_type() == at::kFloat) {
    const FloatTable table(type, results[0].reshape(-1));
    return sharing([table](Call& call) { call.set(0, table(call.in(0))); });
  }
  const ByteTable table(type, results[0].reshape(-1));
  return sharing([table](Call& call) { call.set(0, table(call.in(0))); });
}

template <typename Function>
Kernel function_table(const OpContext& context, Function function) {
  const auto in = take_params(context, 1, 2, context.input_dtype(0));
  const auto out = take_params(context, 3, 4, context.input_dtype(0));
  if (!in || !out) return refuse("its scales and zero points must be constants, one each");
  const at::Tensor floats = dequantize_bytes(all_bytes(in->type), *in);
  const ByteTable table(in->type, quantize_floats(function(floats), *out));
  return sharing([table](Call& call) { call.set(0, table(call.in(0))); });
}

Kernel make_sigmoid(const OpContext& context) {
  return function_table(context, [](const at::Tensor& x) { return at::sigmoid(x); });
}

Kernel make_leaky_relu(const OpContext& context) {
  const float slope = context.node.get_float("alpha", 0.01F);
  return function_table(context, [=](const at::Tensor& x) { return at::leaky_relu(x, slope); });
}

}  // namespace

KernelInfo kernel_Table() { return {.make = make_table}; }
KernelInfo kernel_QLinearSigmoid() { return {.make = make_sigmoid}; }
KernelInfo kernel_QLinearLeakyRelu() { return {.make = make_leaky_relu}; }

}  // namespace quench::exec
