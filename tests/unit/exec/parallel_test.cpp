// SPDX-License-Identifier: Apache-2.0
// Threads that stay together over the steps of an 8-bit model: the same bytes as one thread alone,
// errors that leave the session whole, several sessions at the same time.
#include <gtest/gtest.h>
#include <omp.h>

#include <random>
#include <thread>

#include "quench/error.h"
#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

constexpr std::int64_t kChannels = 32;

/// Five 1x1 convolutions of bytes. The channels of the input are left open.
Model bytes_model() {
  Builder builder;
  std::mt19937 random(1);
  builder.input("x", {{.value = 1}, {.symbol = "C"}, {.value = 40}, {.value = 40}}, DType::UInt8);
  builder.number("step", 0.02F);
  builder.constant("zero", Tensor::of<std::uint8_t>({}, {128}));
  builder.constant("weight_zero", Tensor::of<std::int8_t>({}, {0}));
  std::string bytes = "x";
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    std::vector<std::int8_t> weights(kChannels * kChannels);
    for (auto& each : weights) each = static_cast<std::int8_t>(random() % 41 - 20);
    builder.constant("w" + n, Tensor::of<std::int8_t>({kChannels, kChannels, 1, 1}, weights));
    builder.node("DequantizeLinear", {bytes, "step", "zero"}, {"a" + n});
    builder.node("DequantizeLinear", {"w" + n, "step", "weight_zero"}, {"b" + n});
    builder.node("Conv", {"a" + n, "b" + n}, {"c" + n});
    builder.node("QuantizeLinear", {"c" + n, "step", "zero"}, {"d" + n});
    bytes = "d" + n;
  }
  builder.output(bytes);
  return builder.model;
}

Tensor random_bytes(std::int64_t channels, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(channels * 40 * 40));
  for (auto& each : values) each = static_cast<std::uint8_t>(random());
  return Tensor::of<std::uint8_t>({1, channels, 40, 40}, values);
}

std::vector<std::uint8_t> bytes_of(const TensorMap& results) {
  const auto data = results.at("d4").data<std::uint8_t>();
  return {data.begin(), data.end()};
}

TEST(ThreadPool, LeavesTheCallersNumberOfThreads) {
  omp_set_num_threads(5);
  Session session(bytes_model(), {}, Context{.threads = 2});
  EXPECT_EQ(omp_get_max_threads(), 5);
  session.run({{"x", random_bytes(kChannels, 1)}});
  EXPECT_EQ(omp_get_max_threads(), 5);
}

TEST(ThreadPool, GivesTheBytesOfOneThread) {
  Session alone(bytes_model(), {}, Context{.threads = 1});
  Session together(bytes_model(), {}, Context{.threads = 3});
  for (unsigned run = 0; run < 5; ++run) {
    const TensorMap feeds = {{"x", random_bytes(kChannels, run)}};
    ASSERT_EQ(bytes_of(together.run(feeds)), bytes_of(alone.run(feeds))) << "run " << run;
  }
}

TEST(ThreadPool, SurvivesAnError) {
  Session session(bytes_model(), {}, Context{.threads = 2});
  const TensorMap feeds = {{"x", random_bytes(kChannels, 1)}};
  const auto expected = bytes_of(session.run(feeds));
  EXPECT_EQ(bytes_of(session.run(feeds)), expected);
  EXPECT_THROW(session.run({{"x", random_bytes(kChannels + 1, 1)}}), Error);
  EXPECT_EQ(bytes_of(session.run(feeds)), expected);
}

TEST(ThreadPool, ServesSeveralSessionsAtOnce) {
  const TensorMap feeds = {{"x", random_bytes(kChannels, 1)}};
  Session first(bytes_model(), {}, Context{.threads = 2});
  const auto expected = bytes_of(first.run(feeds));
  const auto work = [&] {
    Session session(bytes_model(), {}, Context{.threads = 2});
    for (int run = 0; run < 20; ++run) EXPECT_EQ(bytes_of(session.run(feeds)), expected);
  };
  std::thread one(work);
  std::thread other(work);
  one.join();
  other.join();
}

/// Three products of dynamic bytes, each followed by small real steps. The rows are left open.
Model dynamic_model() {
  Builder builder;
  std::mt19937 random(2);
  constexpr std::int64_t kWide = 64;
  builder.input("x", {{.value = -1, .symbol = "N"}, {.value = kWide}});
  std::string real = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    std::vector<std::int8_t> weights(kWide * kWide);
    for (auto& each : weights) each = static_cast<std::int8_t>(random() % 201 - 100);
    builder.constant("w" + n, Tensor::of<std::int8_t>({kWide, kWide}, weights));
    builder.number("step" + n, 0.01F);
    builder.node("DynamicQuantizeLinear", {real}, {"b" + n, "s" + n, "z" + n});
    builder.node("MatMulInteger", {"b" + n, "w" + n, "z" + n}, {"sum" + n});
    builder.node("Cast", {"sum" + n}, {"cast" + n}).set("to", std::int64_t{1});
    builder.node("Mul", {"s" + n, "step" + n}, {"scale" + n});
    builder.node("Mul", {"cast" + n, "scale" + n}, {"y" + n});
    builder.node("Sub", {"y" + n, real}, {"d" + n});
    builder.node("Sigmoid", {"d" + n}, {"g" + n});
    real = "g" + n;
  }
  builder.output(real);
  return builder.model;
}

/// Small steps run in the thread pool, large ones outside: sizes that change from run to run change
/// that.
TEST(ThreadPool, TakesSmallStepsAlong) {
  Session alone(dynamic_model(), {}, Context{.threads = 1});
  Session together(dynamic_model(), {}, Context{.threads = 3});
  std::mt19937 random(5);
  std::uniform_real_distribution<float> numbers(-3, 3);
  for (const std::int64_t rows : {70, 70, 70, 1500, 1500, 1, 1, 70, 1500, 0, 70}) {
    Tensor x = Tensor::zeros(DType::Float32, {rows, 64});
    for (float& each : x.mutable_data<float>()) each = numbers(random);
    const TensorMap feeds = {{"x", x}};
    ASSERT_EQ(together.run(feeds).at("g2"), alone.run(feeds).at("g2")) << rows << " rows";
  }
}

}  // namespace
}  // namespace quench
