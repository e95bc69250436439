// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of byte tensors by our own loops.
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/depthwise.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/tail.h"
#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

class IntegerDepthwise {
 public:
  IntegerDepthwise(Window window, Ints weight, ByteParams source, at::ScalarType type,
                   Depthwise conv)
      : window_(std::move(window)),
        weight_(std::move(weight)),
        source_(source),
        type_(type),
        conv_(std::move(conv)) {}

  void operator()(Call& call) const {
    const at::Tensor src = call.in(0).contiguous(kNhwc);
    if (src.dim() != 4 || src.size(1) != weight_[0] || src.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
           c10::toString(src.scalar_type()), to_string(src.sizes().vec()), weight_[0]);
    }
    const Ints shape = convolved_shape(window_, src.sizes(), weight_);
    at::Tensor dst = new_tensor(shape, type_, kNhwc);
    if (dst.numel() != 0) convolve(src, dst);
    call.set(0, std::move(dst));
  }

 private:
  void convolve(const at::Tensor& src, at::Tensor& dst) const {
    DepthwiseImage image{.height = src.size(2),
                         .width = src.size(3),
                         .dst_height = dst.size(2),
                         .dst_width = dst.size(3)};
    const Ints pads = window_.pads_for(src.sizes().slice(2), {weight_[2], weight_[3]});
    std::ranges::copy(pads, image.pads);
    const auto* from = bytes_of(src);
    auto* to = mutable_bytes_of(dst);
    const std::int64_t pairs = (image.dst_height + 1) / 2;
    const std::int64_t each = 2 * image.dst_width * src.size(1);
    const std::int64_t grain = std::max<std::int64_t>(kByteGrain / each, 1);
    share(0, src.size(0) * pairs, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t n = begin / pairs;
        const std::int64_t stop = std::min(end, (n + 1) * pairs);
        DepthwiseImage one = image;
        one.src = from + n * src.stride(0);
        one.dst = to + n * dst.stride(0);
        conv_.run(one, begin - n * pairs, stop - n * pairs);
        begin = stop;
      }
    });
  }

  Window window_;
  Ints weight_;
  ByteParams source_;
  at::ScalarType type_;
  Depthwise conv_;
};

bool clamps_only(const Fusion& fusion) {
  return fusion.activation.empty() || fusion.activation == "relu" || fusion.activation == "clip";
}

/// The numbers of every channel; the source's bytes are flipped into unsigned ones.
DepthwiseNumbers numbers_of(const ByteParams& source, const IntegerTail& tail,
                            const SignedWeights& weights, const at::Tensor& bias) {
  DepthwiseNumbers numbers;
  numbers.weights = static_cast<const std::int8_t*>(weights.data.data_ptr());
  numbers.flip = source.flip();
  numbers.zero = static_cast<std::uint8_t>(source.flipped_zero());
  numbers.store =
      clamped_store(*tail.out, tail.fusion.activation, tail.fusion.alpha, tail.fusion.beta);
  const at::Tensor wide = bias.defined() ? bias.to(at::kDouble).reshape(-1) : bias;
  const bool whole = bias.defined() && bias.scalar_type() == at::kInt;
  for (std::size_t c = 0; c < weights.sums.size(); ++c) {
    const float step = tail.sum_scales[tail.sum_scales.size() == 1 ? 0 : c];
    const double given = bias.defined() ? wide.data_ptr<double>()[c] : 0.0;
    std::int64_t sum = -numbers.zero * weights.sums[c];
    if (whole) sum += static_cast<std::int64_t>(given);
    constexpr std::int64_t kMost = 1 << 30;
    numbers.sums.push_back(static_cast<std::int32_t>(std::clamp(sum, -kMost, kMost)));
    numbers.scales.push_back(step / tail.out->scale);
    numbers.shifts.push_back(
        whole ? 0.0F : static_cast<float>(given / static_cast<double>(tail.out->scale)));
  }
  return numbers;
}

}  // namespace

std::optional<Kernel> make_integer_depthwise(const ConvAttributes& attributes,
                                             const ByteParams& source, const IntegerTail& tail,
                                             const SignedWeights& weights, const at::Tensor& bias) {
  const at::Tensor& data = weights.data;
  const bool fits = attributes.rank == 2 && data.size(1) == 1 &&
                    data.size(0) == attributes.groups && tail.out && !tail.residual &&
                    clamps_only(tail.fusion) && (!bias.defined() || bias.numel() == data.size(0));
  if (!fits) return std::nullopt;
  const Window& window = attributes.window;
  const DepthwiseShape shape{.channels = data.size(0),
                             .kernel = {data.size(2), data.size(3)},
                             .strides = {window.strides[0], window.strides[1]},
                             .dilations = {window.dilations[0], window.dilations[1]}};
  auto conv = Depthwise::make(shape, numbers_of(source, tail, weights, bias));
  if (!conv) return std::nullopt;
  auto kernel = std::make_shared<IntegerDepthwise>(window, data.sizes().vec(), source,
                                                   tail.out->type, std::move(*conv));
  return sharing([kernel](Call& call) { (*kernel)(call); });
}

}  // namespace quench::exec
