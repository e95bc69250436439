// SPDX-License-Identifier: Apache-2.0
// Whole weights, group by group, on threads.
#include "quant/weight.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "base/format.h"
#include "base/parallel.h"
#include "quant/groups.h"
#include "quant/kernels.h"
#include "quant/weight_group.h"

namespace quench::quant {
namespace {

constexpr std::int64_t kWorthThreads = 1 << 18;
constexpr int kMaxInt4 = 4;
constexpr int kMaxInt8 = 8;

Tensor as_float(const Tensor& tensor) {
  return tensor.dtype() == DType::Float32 ? tensor.held() : convert(tensor, DType::Float32);
}

std::span<const float> values_of(const float* data, std::int64_t count) {
  return {data, static_cast<std::size_t>(count)};
}

/// Scales and zero points while they are found, as wide numbers.
struct Found {
  std::vector<float> scale;
  std::vector<std::int16_t> zero;

  explicit Found(std::int64_t groups)
      : scale(static_cast<std::size_t>(groups)), zero(static_cast<std::size_t>(groups)) {}
  void set(std::int64_t group, const ScaleAndZero& params) {
    scale[static_cast<std::size_t>(group)] = params.scale;
    zero[static_cast<std::size_t>(group)] = static_cast<std::int16_t>(params.zero);
  }
};

/// The groups of a tile one after the other: where they lie, or in copies where they are strewn.
template <typename Integer>
struct TileBuffers {
  const Groups& groups;
  bool copied;
  std::vector<float> floats;
  std::vector<Integer> numbers;

  explicit TileBuffers(const Groups& of)
      : groups(of),
        copied(!of.contiguous()),
        floats(static_cast<std::size_t>(copied ? of.largest() * 16 : 0)),
        numbers(floats.size()) {}
  /// Calls body(group, place), the place being counted from `floats` or from the weight's begin.
  template <typename Body>
  void for_each_group(const Groups::Tile& tile, const Body& body) const {
    for (std::int64_t k = 0; k < tile.count; ++k) {
      body(tile.first + k, copied ? k * groups.largest() : groups.begin(tile.first + k));
    }
  }
};

/// Calls body(tile, buffers) for every tile on threads, each with buffers of its own.
template <typename Integer, typename Body>
void for_each_tile(const Groups& groups, std::int64_t elements, int threads, const Body& body) {
  const int used = elements >= kWorthThreads ? threads : 1;
  parallel_for(groups.num_tiles(), used, [&](std::int64_t begin, std::int64_t end) {
    TileBuffers<Integer> buffers(groups);
    for (std::int64_t index = begin; index < end; ++index) body(groups.tile(index), buffers);
  });
}

/// Works through a weight: `work(values, integers, group)` sees one group after the other. The
/// integers are there already, or are made by `work`.
enum class Integers { Made, Given };
template <Integers kIntegers, typename Integer, typename Work>
Power run_groups(const Tensor& real, const Groups& groups, Integer* integers, int threads,
                 const Work& work) {
  const float* src = real.data<float>().data();
  Power total;
  std::mutex mutex;
  const auto run = [&](const Groups::Tile& tile, TileBuffers<Integer>& own) {
    if (own.copied) groups.gather(src, tile, own.floats.data());
    if (own.copied && kIntegers == Integers::Given) {
      groups.gather(integers, tile, own.numbers.data());
    }
    const float* from = own.copied ? own.floats.data() : src;
    Integer* to = own.copied ? own.numbers.data() : integers;
    Power part;
    own.for_each_group(tile, [&](std::int64_t group, std::int64_t at) {
      const Power power = work(values_of(from + at, groups.size(group)), to + at, group);
      part.signal += power.signal;
      part.noise += power.noise;
    });
    if (own.copied && kIntegers == Integers::Made) groups.scatter(to, tile, integers);
    const std::lock_guard lock(mutex);
    total.signal += part.signal;
    total.noise += part.noise;
  };
  for_each_tile<Integer>(groups, real.size(), threads, run);
  return total;
}

Tensor zero_points(const Found& found, const Shape& shape, DType dtype) {
  Tensor wide = Tensor::of<std::int16_t>(shape, std::span<const std::int16_t>(found.zero));
  if (dtype == DType::Int16) return wide;
  const Tensor bytes = convert(wide, DType::Int8);
  return dtype == DType::Int8 ? bytes : pack_int4(bytes.data<std::int8_t>(), shape);
}

void put_params(const Found& found, const Groups& groups, QuantWeight& result) {
  const Shape& shape = groups.scale_shape();
  result.scale = Tensor::of<float>(shape, std::span<const float>(found.scale));
  if (result.spec.symmetric || result.spec.bits == 1) return;
  result.zero_point = zero_points(found, shape, result.integers.dtype());
}

template <typename Integer>
QuantWeight quantize_as(const Tensor& real, const WeightSpec& spec, int threads) {
  QuantWeight result{.spec = spec, .integers = {}, .scale = {}, .zero_point = {}};
  const Groups groups(real.shape(), spec);
  Found found(groups.count());
  Tensor integers = Tensor::zeros(DTypeOf<Integer>::value, real.shape());
  const Power power = run_groups<Integers::Made>(
      real, groups, integers.mutable_data<Integer>().data(), threads,
      [&](std::span<const float> values, Integer* dst, std::int64_t group) {
        const ScaleAndZero params = solve_group(values, spec, dst);
        found.set(group, params);
        return measure(values, dst, params);
      });
  result.signal = power.signal;
  result.noise = power.noise;
  if constexpr (std::is_same_v<Integer, std::int8_t>) {
    if (spec.bits <= kMaxInt4) {
      integers = pack_int4(integers.data<std::int8_t>(), real.shape());
    }
  }
  result.integers = std::move(integers);
  put_params(found, groups, result);
  return result;
}

/// The integers of any storage type as int16, for work that is not in a hurry.
std::vector<std::int16_t> widened(const Tensor& given) {
  const Tensor integers = given.held();
  if (integers.dtype() == DType::Int16) {
    const auto data = integers.data<std::int16_t>();
    return {data.begin(), data.end()};
  }
  if (integers.dtype() == DType::Int8) {
    const auto data = integers.data<std::int8_t>();
    return {data.begin(), data.end()};
  }
  const std::vector<std::int8_t> bytes = unpack_int4(integers);
  return {bytes.begin(), bytes.end()};
}

ScaleAndZero params_at(const QuantWeight& weight, std::span<const std::int16_t> zeros,
                       std::int64_t group) {
  const auto index = static_cast<std::size_t>(group);
  return {weight.scale.data<float>()[index], zeros.empty() ? 0 : zeros[index]};
}

std::vector<std::int16_t> zeros_of(const QuantWeight& weight) {
  return weight.zero_point.defined() ? widened(weight.zero_point) : std::vector<std::int16_t>();
}

}  // namespace

double QuantWeight::relative_error() const { return signal > 0 ? std::sqrt(noise / signal) : 0; }

QuantWeight quantize_weight(const Tensor& weight, const WeightSpec& spec, int threads) {
  if (spec.bits < 1 || spec.bits > 16) {
    fail(ErrorKind::Usage, "weights take 1 to 16 bits, not {}", spec.bits);
  }
  const Tensor real = as_float(weight);
  return spec.bits <= kMaxInt8 ? quantize_as<std::int8_t>(real, spec, threads)
                               : quantize_as<std::int16_t>(real, spec, threads);
}

Tensor dequantize_weight(const QuantWeight& weight, int threads) {
  using Wide = std::int16_t;
  const Shape& shape = weight.integers.shape();
  const Groups groups(shape, weight.spec);
  Tensor result = Tensor::zeros(DType::Float32, shape);
  float* dst = result.mutable_data<float>().data();
  const std::vector<Wide> zeros = zeros_of(weight);
  const std::vector<Wide> integers = widened(weight.integers);
  // The float side of run_groups is only read; here it is what is made.
  const auto run = [&](const Groups::Tile& tile, TileBuffers<Wide>& own) {
    if (own.copied) groups.gather(integers.data(), tile, own.numbers.data());
    const Wide* from = own.copied ? own.numbers.data() : integers.data();
    float* to = own.copied ? own.floats.data() : dst;
    own.for_each_group(tile, [&](std::int64_t group, std::int64_t at) {
      const ScaleAndZero params = params_at(weight, zeros, group);
      dequantize(from + at, groups.size(group),
                 {params.scale, 0, 0, static_cast<float>(params.zero)}, to + at);
    });
    if (own.copied) groups.scatter(to, tile, dst);
  };
  for_each_tile<Wide>(groups, result.size(), threads, run);
  return result;
}

int greatest_integer(const QuantWeight& weight) {
  int greatest = 0;
  for (const std::int16_t integer : widened(weight.integers)) {
    greatest = std::max(greatest, std::abs(static_cast<int>(integer)));
  }
  return greatest;
}

QuantWeight with_integers(const Tensor& weight, const QuantWeight& base,
                          std::span<const std::int16_t> integers, int threads) {
  const Tensor real = as_float(weight);
  const Groups groups(real.shape(), base.spec);
  QuantWeight result = base;
  const std::vector<std::int16_t> zeros = zeros_of(base);
  std::vector<std::int16_t> own(integers.begin(), integers.end());
  const Power power = run_groups<Integers::Given>(
      real, groups, own.data(), threads,
      [&](std::span<const float> values, std::int16_t* dst, std::int64_t group) {
        return measure(values, dst, params_at(base, zeros, group));
      });
  result.signal = power.signal;
  result.noise = power.noise;
  Tensor wide = Tensor::of<std::int16_t>(real.shape(), std::span<const std::int16_t>(own));
  if (base.spec.bits <= kMaxInt8) wide = convert(wide, DType::Int8);
  result.integers = base.spec.bits <= kMaxInt4 ? pack_int4(wide.data<std::int8_t>(), real.shape())
                                               : std::move(wide);
  return result;
}

Tensor pack_int4(std::span<const std::int8_t> integers, Shape shape) {
  Tensor result = Tensor::zeros(DType::Int4, std::move(shape));
  auto bytes = result.mutable_bytes();
  for (std::size_t i = 0; i + 1 < integers.size(); i += 2) {
    const auto low = static_cast<unsigned>(integers[i]) & 15U;
    const auto high = static_cast<unsigned>(integers[i + 1]) & 15U;
    bytes[i / 2] = static_cast<std::byte>(low | high << 4U);
  }
  if (integers.size() % 2 == 1) {
    bytes[integers.size() / 2] =
        static_cast<std::byte>(static_cast<unsigned>(integers.back()) & 15U);
  }
  return result;
}

std::vector<std::int8_t> unpack_int4(const Tensor& packed) {
  const Tensor held = packed.held();
  const auto bytes = held.bytes();
  std::vector<std::int8_t> result(static_cast<std::size_t>(packed.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(bytes[i / 2]);
    const unsigned raw = i % 2 == 0 ? byte & 15U : byte >> 4U;
    result[i] =
        static_cast<std::int8_t>(raw >= 8 ? static_cast<int>(raw) - 16 : static_cast<int>(raw));
  }
  return result;
}

}  // namespace quench::quant
