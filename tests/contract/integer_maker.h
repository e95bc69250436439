// SPDX-License-Identifier: Apache-2.0
// Q/DQ models with random scales, and the check that integers give what their definition gives.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "quench/cpu.h"
#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench::testing {

using Ints = std::vector<std::int64_t>;

/// A Q/DQ model under construction, in float (what runs on integers) or double (what checks it).
class Maker {
 public:
  Maker(std::uint64_t seed, DType real) : builder_(20), random_(seed), float_type_(real) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool flip() { return pick(0, 1) == 1; }
  float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }

  /// A graph input of random bytes, dequantised.
  std::string activation(const Shape& shape, float scale = 0.02F) {
    const std::string name = fresh("x");
    const DType dtype = flip() ? DType::UInt8 : DType::Int8;
    std::vector<Dim> dims;
    for (const std::int64_t size : shape) dims.push_back({.value = size});
    builder_.input(name, dims, dtype);
    feeds_[name] = bytes(shape, dtype, -128, 127);
    return dequantise(name, scale * uniform(0.5F, 1.5F), dtype, zero(dtype));
  }
  /// Constant int8 weights with one scale for each of `channels` along `axis`.
  std::string weights(const Shape& shape, std::int64_t axis) {
    const std::string name = fresh("w");
    const bool is_signed = pick(0, 3) != 0;
    const DType dtype = is_signed ? DType::Int8 : DType::UInt8;
    builder_.constant(name, bytes(shape, dtype, -127, 127));
    const bool each = flip();
    const std::int64_t count = each ? shape[static_cast<std::size_t>(axis)] : 1;
    scales_.clear();
    for (std::int64_t i = 0; i < count; ++i) scales_.push_back(uniform(0.002F, 0.01F));
    const std::int64_t origin = is_signed ? 0 : 128;
    const std::string scale = reals(each ? Shape{count} : Shape{}, scales_);
    const std::string zeros = integers(each ? Shape{count} : Shape{}, dtype,
                                       Ints(static_cast<std::size_t>(count), origin));
    Node& node = builder_.node("DequantizeLinear", {name, scale, zeros}, {name + "_real"});
    if (each) node.set("axis", axis);
    return name + "_real";
  }
  /// A bias in steps of the sums, or as real numbers.
  std::string bias(std::int64_t channels, float source_scale) {
    if (flip()) {
      std::vector<float> numbers;
      for (std::int64_t i = 0; i < channels; ++i) numbers.push_back(uniform(-1, 1));
      return reals({channels}, numbers);
    }
    Ints steps;
    for (std::int64_t i = 0; i < channels; ++i) steps.push_back(pick(-3000, 3000));
    std::vector<float> scale;
    for (const float each : scales_) scale.push_back(each * source_scale);
    const std::string name = integers({channels}, DType::Int32, steps);
    const std::string by = reals(scale.size() == 1 ? Shape{} : Shape{channels}, scale);
    builder_.node("DequantizeLinear", {name, by}, {name + "_real"}).set("axis", std::int64_t{0});
    return name + "_real";
  }
  std::string dequantise(const std::string& name, float scale, DType dtype, std::int64_t origin) {
    last_scale_ = scale;
    last_dtype_ = dtype;
    last_zero_ = origin;
    const std::string out = fresh("real");
    builder_.node("DequantizeLinear", {name, reals({}, {scale}), integers({}, dtype, {origin})},
                  {out});
    return out;
  }
  /// A value quantised with random parameters, as floats again.
  std::string rounded(const std::string& value, float scale) {
    const DType dtype = flip() ? DType::UInt8 : DType::Int8;
    const std::int64_t origin = zero(dtype);
    const float by = scale * uniform(0.7F, 1.3F);
    const std::string bytes = fresh("bytes");
    builder_.node("QuantizeLinear", {value, reals({}, {by}), integers({}, dtype, {origin})},
                  {bytes});
    return dequantise(bytes, by, dtype, origin);
  }
  /// Ends the graph: quantises a value with random parameters, or those of the last dequantised.
  void finish(const std::string& value, float scale, bool same_params = false) {
    const DType dtype = same_params ? last_dtype_ : flip() ? DType::UInt8 : DType::Int8;
    const std::int64_t origin = same_params ? last_zero_ : zero(dtype);
    const float by = same_params ? last_scale_ : scale * uniform(0.7F, 1.3F);
    builder_.node("QuantizeLinear", {value, reals({}, {by}), integers({}, dtype, {origin})}, {"y"});
    builder_.output("y");
  }
  /// Ends the graph with real numbers.
  void output(const std::string& value) { builder_.output(value); }
  static constexpr std::int64_t kNumActivations = 18;
  /// An activation behind a layer, which may absorb it; or none.
  std::string activated(const std::string& value) {
    return activated(value, pick(0, 2 * kNumActivations));
  }
  /// The activation `which`, or none beyond the last.
  std::string activated(const std::string& value, std::int64_t which);
  std::string apply(const std::string& op, const std::vector<std::string>& inputs) {
    node(op, inputs);
    return last_;
  }
  Node& node(const std::string& op, const std::vector<std::string>& inputs) {
    last_ = fresh("v");
    return builder_.node(op, inputs, {last_});
  }
  const std::string& last() const { return last_; }
  float last_scale() const { return last_scale_; }
  std::string ints(const Ints& numbers) {
    const std::string name = fresh("ints");
    builder_.constant(name, Tensor::of<std::int64_t>({std::ssize(numbers)}, numbers));
    return name;
  }
  std::string reals(const Shape& shape, const std::vector<float>& numbers) {
    const std::string name = fresh("r");
    builder_.constant(name, convert(Tensor::of<float>(shape, numbers), float_type_));
    return name;
  }
  const TensorMap& feeds() const { return feeds_; }
  Model model() const { return builder_.model; }

 private:
  std::string fresh(const std::string& stem) { return stem + std::to_string(next_++); }
  std::int64_t zero(DType dtype) {
    if (pick(0, 2) == 0) return dtype == DType::Int8 ? -128 : 0;
    return dtype == DType::Int8 ? pick(-100, 100) : pick(20, 230);
  }
  std::string integers(const Shape& shape, DType dtype, const Ints& numbers) {
    const std::string name = fresh("z");
    builder_.constant(name, convert(Tensor::of<std::int64_t>(shape, numbers), dtype));
    return name;
  }
  Tensor bytes(const Shape& shape, DType dtype, std::int64_t low, std::int64_t high) {
    Ints numbers(static_cast<std::size_t>(*num_elements(shape)));
    for (std::int64_t& each : numbers) each = pick(low, high) + (dtype == DType::UInt8 ? 128 : 0);
    return convert(Tensor::of<std::int64_t>(shape, numbers), dtype);
  }

  Builder builder_;
  std::mt19937_64 random_;
  DType float_type_;
  TensorMap feeds_;
  std::vector<float> scales_;
  std::string last_;
  float last_scale_ = 1;
  DType last_dtype_ = DType::UInt8;
  std::int64_t last_zero_ = 0;
  int next_ = 0;
};

/// Runs the same model on integers and in double precision. At most one element in a thousand may
/// differ, by one step, where rounding inside the requantisation decides.
class Comparison {
 public:
  /// Where not all is on integers, only the numbers are compared.
  explicit Comparison(bool on_integers = true) : on_integers_(on_integers) {}

  void add(const std::function<void(Maker&)>& make, std::uint64_t seed);
  void finish(const std::string& name) const;

 private:
  bool on_integers_;
  std::int64_t elements_ = 0;
  std::int64_t off_by_one_ = 0;
};

}  // namespace quench::testing
