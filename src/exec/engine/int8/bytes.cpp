// SPDX-License-Identifier: Apache-2.0
// Tables, and conversions between bytes and floats.
#include "exec/engine/int8/bytes.h"

#include <cmath>

#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/quantize.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

/// Images come in planes, and every layer wants their channels interleaved.
bool is_planar_image(const at::Tensor& x) {
  return x.dim() == 4 && x.size(1) > 1 && x.size(1) <= 4 && x.is_contiguous() &&
         !x.is_contiguous(kNhwc);
}

at::Tensor quantize_image(const at::Tensor& x, const ByteParams& params) {
  at::Tensor dst = new_tensor(x.sizes(), params.type, kNhwc);
  const std::int64_t channels = x.size(1);
  const std::int64_t pixels = x.size(2) * x.size(3);
  const float* src = x.data_ptr<float>();
  auto* to = mutable_bytes_of(dst);
  const ByteStore store = byte_store(params);
  share(0, x.size(0) * pixels, kByteGrain / 4, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t image = begin / pixels;
      const std::int64_t stop = std::min(end, (image + 1) * pixels);
      quantize_planes_loop(src + image * channels * pixels + begin % pixels, pixels, channels,
                           params.scale, store, to + begin * channels, stop - begin);
      begin = stop;
    }
  });
  return dst;
}

}  // namespace

at::Tensor dense(const at::Tensor& x) {
  return x.is_non_overlapping_and_dense() ? x : x.contiguous();
}

ByteSum byte_sum(const ByteParams& a, const ByteParams& b, const ByteParams& out) {
  ByteSum sum{.scale_a = a.scale / out.scale,
              .scale_b = b.scale / out.scale,
              .flip_a = a.flip(),
              .flip_b = b.flip()};
  sum.shift =
      out.flipped_zero() - std::fma(sum.scale_a, a.flipped_zero(), sum.scale_b * b.flipped_zero());
  return sum;
}

ByteStore clamped_store(const ByteParams& out, std::string_view activation, float low, float high) {
  ByteStore store = byte_store(out);
  if (activation == "relu") store.low = std::max(store.low, store.zero);
  if (activation != "clip") return store;
  const auto byte = [&](float bound) {
    return std::clamp(std::nearbyint(bound / out.scale) + store.zero, 0.0F, 255.0F);
  };
  store.low = byte(low);
  store.high = byte(high);
  return store;
}

ByteTable::ByteTable(at::ScalarType from, const at::Tensor& results)
    : from_(from), to_(results.scalar_type()) {
  const at::Tensor flat = results.contiguous();
  const std::uint8_t flip = from == at::kChar ? 0x80 : 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i ^ flip] = bytes_of(flat)[i];
}

at::Tensor ByteTable::operator()(const at::Tensor& given) const {
  if (given.scalar_type() != from_) {
    fail(ErrorKind::BadData, "the input is {}, but {} was expected",
         c10::toString(given.scalar_type()), c10::toString(from_));
  }
  const at::Tensor x = dense(given);
  at::Tensor dst = new_alike(x, to_);
  const auto* src = bytes_of(x);
  auto* to = mutable_bytes_of(dst);
  share(0, x.numel(), kLookUpGrain, [&](std::int64_t begin, std::int64_t end) {
    look_up_loop(entries_.data(), src + begin, to + begin, end - begin);
  });
  return dst;
}

at::Tensor all_bytes(at::ScalarType type) {
  return at::arange(type == at::kChar ? -128 : 0, type == at::kChar ? 128 : 256, at::kInt).to(type);
}

ByteTable requantising_table(const ByteParams& from, const ByteParams& to) {
  const at::Tensor floats = (all_bytes(from.type).to(at::kFloat) - from.zero) * from.scale;
  const at::Tensor zero = at::full({}, to.zero, at::kInt);
  return {from.type, to_integers(at::round(floats / to.scale), zero, to.type)};
}

at::Tensor dequantize_bytes(const at::Tensor& given, const ByteParams& params) {
  const at::Tensor x = dense(given);
  at::Tensor dst = new_alike(x, at::kFloat);
  const auto* src = bytes_of(x);
  float* to = dst.data_ptr<float>();
  share(0, x.numel(), kByteGrain, [&](std::int64_t begin, std::int64_t end) {
    dequantize_loop(src + begin, params.flip(), params.flipped_zero(), params.scale, to + begin,
                    end - begin);
  });
  return dst;
}

at::Tensor quantize_floats(const at::Tensor& given, const ByteParams& params) {
  if (is_planar_image(given)) return quantize_image(given, params);
  const at::Tensor x = dense(given);
  at::Tensor dst = new_alike(x, params.type);
  const float* src = x.data_ptr<float>();
  auto* to = mutable_bytes_of(dst);
  const ByteStore store = byte_store(params);
  share(0, x.numel(), kByteGrain, [&](std::int64_t begin, std::int64_t end) {
    quantize_loop(src + begin, params.scale, store, to + begin, end - begin);
  });
  return dst;
}

at::Tensor concat_bytes(const std::vector<at::Tensor>& parts, std::int64_t axis) {
  const bool images = std::ranges::all_of(
      parts, [](const at::Tensor& x) { return x.dim() == 4 && x.is_contiguous(kNhwc); });
  const std::int64_t along = wrap_axis(axis, parts.front().dim());
  if (!images) return at::cat(parts, along);
  std::vector<at::Tensor> nhwc;
  for (const at::Tensor& part : parts) nhwc.push_back(part.permute({0, 2, 3, 1}));
  constexpr std::array<std::int64_t, 4> kMoved = {0, 3, 1, 2};
  return at::cat(nhwc, kMoved[static_cast<std::size_t>(along)]).permute({0, 3, 1, 2});
}

}  // namespace quench::exec
