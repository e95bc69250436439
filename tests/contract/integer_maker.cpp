// SPDX-License-Identifier: Apache-2.0
// The activations of Q/DQ models, and their runs side by side.
#include "contract/integer_maker.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>

namespace quench::testing {
namespace {

const Context kContext{.threads = 2};

std::vector<std::int64_t> steps(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::Int64);
  return {wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end()};
}

}  // namespace

std::string Maker::activated(const std::string& value, std::int64_t which) {
  // Without attributes and further inputs.
  static constexpr std::array kPlain = {"Relu", "Sigmoid", "HardSwish", "Tanh",     "Gelu",
                                        "Elu",  "Selu",    "Mish",      "Softplus", "Softsign"};
  if (which < std::ssize(kPlain)) return apply(kPlain[static_cast<std::size_t>(which)], {value});
  switch (which - std::ssize(kPlain)) {
    case 0:
      return apply("Clip", {value, reals({}, {0}), reals({}, {uniform(0.5F, 6)})});
    case 1:
      return apply("Clip", {value, reals({}, {uniform(-2, 0)}), reals({}, {uniform(0.5F, 6)})});
    case 2:
      node("LeakyRelu", {value}).set("alpha", uniform(0.01F, 0.5F));
      return last();
    case 3:
      return apply("HardSigmoid", {value});
    case 4: {
      Node& gate = node("HardSigmoid", {value});
      gate.set("alpha", uniform(0.05F, 0.5F));
      gate.set("beta", uniform(0.2F, 0.8F));
      return last();
    }
    case 5:
      return apply("Mul", {value, apply("Sigmoid", {value})});
    case 6:
      node("Gelu", {value}).set("approximate", std::string("tanh"));
      return last();
    case 7:
      return apply("PRelu", {value, reals({}, {uniform(0.01F, 0.5F)})});
    default:
      return value;
  }
}

void Comparison::add(const std::function<void(Maker&)>& make, std::uint64_t seed) {
  Maker fast(seed, DType::Float32);
  Maker exact(seed, DType::Float64);
  make(fast);
  make(exact);
  std::set<std::string> ran;
  SessionOptions options;
  options.on_step = [&](const StepTime& step) { ran.insert(std::string(step.op_type)); };
  Session integer(fast.model(), options, kContext);
  Session reference(exact.model(), {.reference = true}, kContext);
  const auto got = steps(integer.run(fast.feeds()).at("y"));
  const auto wanted = steps(reference.run(exact.feeds()).at("y"));
  ASSERT_EQ(got.size(), wanted.size());
  const bool limited = used_isa() < Isa::Vnni;
  EXPECT_TRUE(limited || !on_integers_ || !ran.contains("DequantizeLinear")) << "it ran in float";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::int64_t error = std::abs(got[i] - wanted[i]);
    ASSERT_LE(error, 1) << "element " << i << ": " << got[i] << ", not " << wanted[i];
    off_by_one_ += error;
  }
  elements_ += std::ssize(got);
}

void Comparison::finish(const std::string& name) const {
  std::cout << name << ": " << off_by_one_ << " of " << elements_ << " differ by one\n";
  EXPECT_LE(static_cast<double>(off_by_one_), 0.001 * static_cast<double>(elements_));
}

}  // namespace quench::testing
