// SPDX-License-Identifier: Apache-2.0
// Threads that stay together over the steps of an 8-bit model: the same bytes as one thread alone,
// errors that leave the session whole, several sessions at the same time.
#include <gtest/gtest.h>

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

TEST(Team, GivesTheBytesOfOneThread) {
  Session alone(bytes_model(), {}, Context{.threads = 1});
  Session together(bytes_model(), {}, Context{.threads = 3});
  for (unsigned run = 0; run < 5; ++run) {
    const TensorMap feeds = {{"x", random_bytes(kChannels, run)}};
    ASSERT_EQ(bytes_of(together.run(feeds)), bytes_of(alone.run(feeds))) << "run " << run;
  }
}

TEST(Team, SurvivesAnError) {
  Session session(bytes_model(), {}, Context{.threads = 2});
  const TensorMap feeds = {{"x", random_bytes(kChannels, 1)}};
  const auto expected = bytes_of(session.run(feeds));
  EXPECT_EQ(bytes_of(session.run(feeds)), expected);
  EXPECT_THROW(session.run({{"x", random_bytes(kChannels + 1, 1)}}), Error);
  EXPECT_EQ(bytes_of(session.run(feeds)), expected);
}

TEST(Team, ServesSeveralSessionsAtOnce) {
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

}  // namespace
}  // namespace quench
