// SPDX-License-Identifier: Apache-2.0
// Sessions: taps, partial runs, open shapes, and what they refuse.
#include "quench/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

Tensor random_tensor(const Shape& shape, unsigned seed) {
  return Tensor::of<float>(shape, random_values(*num_elements(shape), seed));
}

/// x -> conv -> relu -> conv -> + x -> relu: a residual block.
Model residual_block(std::int64_t kernel = 3) {
  const std::vector<std::int64_t> pads(4, kernel / 2);
  Builder b;
  b.input("x", {{.symbol = "N"}, {.value = 8}, {.symbol = "H"}, {.symbol = "W"}});
  for (const char* name : {"w1", "w2"}) {
    b.constant(name, random_tensor({8, 8, kernel, kernel}, name[1] == '1' ? 1U : 2U));
  }
  b.node("Conv", {"x", "w1"}, {"c1"}).set("pads", pads);
  b.node("Relu", {"c1"}, {"r1"});
  b.node("Conv", {"r1", "w2"}, {"c2"}).set("pads", pads);
  b.node("Add", {"c2", "x"}, {"sum"});
  b.node("Relu", {"sum"}, {"y"});
  b.output("y");
  return b.model;
}

void expect_close(const Tensor& actual, const Tensor& expected, float tolerance = 1e-3F) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const auto a = actual.data<float>();
  const auto e = expected.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], e[i], tolerance) << "element " << i;
}

std::string error_of(const std::function<void()>& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Session, FusedAndReferenceRunsAgree) {
  Session fast(residual_block());
  Session reference(residual_block(), {.reference = true});
  const Tensor x = random_tensor({2, 8, 9, 7}, 3);
  expect_close(fast.run({{"x", x}}).at("y"), reference.run({{"x", x}}).at("y"));
}

TEST(Session, ResidualsOfImagesNarrowerThanThePadding) {
  Session fast(residual_block(7));
  Session reference(residual_block(7), {.reference = true});
  for (const Shape& shape : {Shape{2, 8, 1, 1}, Shape{2, 8, 4, 2}, Shape{2, 8, 2, 4}}) {
    const Tensor x = random_tensor(shape, 3);
    expect_close(fast.run({{"x", x}}).at("y"), reference.run({{"x", x}}).at("y"));
  }
}

TEST(Session, InputsAreNotWrittenAndRunsRepeat) {
  Session session(residual_block());
  const Tensor x = random_tensor({1, 8, 5, 5}, 4);
  const std::vector<float> before = to_float(x);
  const Tensor first = session.run({{"x", x}}).at("y");
  const Tensor kept = first.reshaped(first.shape());
  const std::vector<float> values = to_float(kept);
  EXPECT_EQ(session.run({{"x", x}}).at("y"), first);
  EXPECT_EQ(to_float(x), before);
  EXPECT_EQ(to_float(kept), values) << "a later run wrote into an earlier result";
}

TEST(Session, TapsShowValuesThatFusionWouldHide) {
  Session session(residual_block(), {.taps = {"c1", "sum"}});
  Session reference(residual_block(), {.reference = true});
  const Tensor x = random_tensor({1, 8, 6, 6}, 5);
  const std::vector<std::string> wanted = {"c1", "sum", "y"};
  const TensorMap fast = session.run({{"x", x}}, wanted);
  const TensorMap slow = reference.run({{"x", x}}, wanted);
  for (const std::string& name : wanted) expect_close(fast.at(name), slow.at(name));
}

TEST(Session, PartialRunsStartFromCachedValues) {
  Session session(residual_block(), {.taps = {"r1"}});
  const Tensor x = random_tensor({1, 8, 6, 6}, 6);
  const std::vector<std::string> all = {"r1", "y"};
  const TensorMap whole = session.run({{"x", x}}, all);
  const TensorMap part = session.run({{"x", x}, {"r1", whole.at("r1")}});
  EXPECT_EQ(part.at("y"), whole.at("y"));
  // Only what lies behind the cached value is computed: x is not needed for the tap itself.
  const std::vector<std::string> tap = {"r1"};
  EXPECT_EQ(session.run({{"r1", whole.at("r1")}}, tap).at("r1"), whole.at("r1"));
}

TEST(Session, OneSessionServesManyShapes) {
  Session session(residual_block());
  Session reference(residual_block(), {.reference = true});
  for (const Shape& shape : {Shape{1, 8, 4, 4}, Shape{3, 8, 4, 4}, Shape{1, 8, 11, 3},
                             Shape{1, 8, 4, 4}, Shape{0, 8, 4, 4}}) {
    const Tensor x = random_tensor(shape, 7);
    expect_close(session.run({{"x", x}}).at("y"), reference.run({{"x", x}}).at("y"));
  }
}

TEST(Session, ResultsDoNotDependOnTheNumberOfThreads) {
  const Tensor x = random_tensor({2, 8, 16, 16}, 8);
  Context one;
  one.threads = 1;
  Context two;
  two.threads = 2;
  Session a(residual_block(), {}, one);
  Session b(residual_block(), {}, two);
  expect_close(a.run({{"x", x}}).at("y"), b.run({{"x", x}}).at("y"), 1e-4F);
}

TEST(Session, EveryUnsupportedNodeIsReportedAtLoad) {
  Builder b;
  b.input("x", {{.value = 4}});
  b.node("Telepathy", {"x"}, {"a"}).name = "first";
  b.node("Relu", {"a"}, {"r"});
  b.node("Divination", {"r"}, {"y"}).name = "second";
  b.output("y");
  const std::string text = error_of([&] { Session session(b.model); }, ErrorKind::Unsupported);
  EXPECT_NE(text.find("'first'"), std::string::npos) << text;
  EXPECT_NE(text.find("'second'"), std::string::npos) << text;
}

TEST(Session, NegativePadsAreRefusedWhateverIsKnownOfTheInput) {
  // Kernels that write around an image must never see them.
  for (const bool bytes : {false, true}) {
    Builder b;
    b.input("x", {});
    b.graph()[b.id("x")].type.shape.reset();
    b.number("s", 0.1F);
    b.constant("z", Tensor::zeros(DType::UInt8, {}));
    b.constant("w8", Tensor::zeros(DType::Int8, {4, 3, 3, 3}));
    b.constant("w", Tensor::zeros(DType::Float32, {4, 3, 3, 3}));
    if (bytes) {
      b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
      b.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
      b.node("DequantizeLinear", {"w8", "s"}, {"wd"});
    }
    Node& conv = b.node("Conv", {bytes ? "d" : "x", bytes ? "wd" : "w"}, {"c"});
    conv.name = "cropping";
    conv.set("pads", std::vector<std::int64_t>{-1, -1, 0, 0});
    b.node("QuantizeLinear", {"c", "s", "z"}, {"y"});
    b.output("y");
    const std::string text = error_of([&] { Session session(b.model); }, ErrorKind::Unsupported);
    EXPECT_NE(text.find("cropping"), std::string::npos) << text;
    EXPECT_NE(text.find("negative pads"), std::string::npos) << text;
  }
}

TEST(Session, WrongFeedsAreNamed) {
  Session session(residual_block());
  const Tensor x = random_tensor({1, 8, 4, 4}, 9);
  const auto run = [&](const TensorMap& feeds) {
    return error_of([&] { session.run(feeds); }, ErrorKind::BadData);
  };
  EXPECT_NE(run({{"xx", x}}).find("did you mean 'x'"), std::string::npos);
  EXPECT_NE(run({}).find("'x'"), std::string::npos);
  EXPECT_NE(run({{"x", random_tensor({1, 3, 4, 4}, 1)}}).find("float32[N,8,H,W]"),
            std::string::npos);
  EXPECT_NE(run({{"x", Tensor::zeros(DType::Int64, {1, 8, 4, 4})}}).find("int64"),
            std::string::npos);
  // A refused run leaves the session usable.
  EXPECT_EQ(session.run({{"x", x}}).size(), 1U);
}

TEST(Session, UnknownTapsAreRefused) {
  error_of([] { Session session(residual_block(), {.taps = {"nowhere"}}); }, ErrorKind::BadData);
}

TEST(Session, SamplesOfTapsStreamByWhereTheyLie) {
  std::mutex mutex;
  std::map<std::size_t, std::vector<double>> sums;
  SessionOptions options;
  options.taps = {"r1", "x"};
  options.on_sample = [&](const TapSample& sample) {
    const std::lock_guard lock(mutex);
    sums[sample.tap].push_back(std::accumulate(sample.values.begin(), sample.values.end(), 0.0));
  };
  Session session(residual_block(), options);
  const Tensor x = random_tensor({3, 8, 5, 6}, 11);
  const std::vector<std::string> wanted = {"r1"};
  const Tensor r1 = session.run({{"x", x}}, wanted).at("r1");
  for (const auto& [tap, whole] : {std::pair(std::size_t{0}, r1), std::pair(std::size_t{1}, x)}) {
    ASSERT_EQ(sums[tap].size(), 3U);
    const std::vector<float> values = to_float(whole);
    const double total = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_NEAR(std::accumulate(sums[tap].begin(), sums[tap].end(), 0.0), total, 1e-2);
  }
}

TEST(Session, ProfilesEveryStep) {
  std::vector<std::string> ops;
  SessionOptions options;
  options.on_step = [&](const StepTime& step) { ops.emplace_back(step.op_type); };
  Session session(residual_block(), options);
  session.run({{"x", random_tensor({1, 8, 4, 4}, 1)}});
  EXPECT_EQ(ops, (std::vector<std::string>{"Conv", "Conv"}));
}

TEST(Session, HalfPrecisionModelsRunAndReturnHalf) {
  Builder b;
  b.input("x", {{.value = 1}, {.value = 2}}, DType::Float16);
  b.constant("w", convert(Tensor::of<float>({2, 2}, {1.0F, 2.0F, 3.0F, 4.0F}), DType::Float16));
  b.node("MatMul", {"x", "w"}, {"y"});
  b.output("y");
  Session session(b.model);
  const Tensor y =
      session.run({{"x", convert(Tensor::of<float>({1, 2}, {1.0F, 2.0F}), DType::Float16)}})
          .at("y");
  EXPECT_EQ(y.dtype(), DType::Float16);
  EXPECT_EQ(to_float(y), (std::vector<float>{7, 10}));
}

/// A tap of which nothing depends on what is fed.
TEST(Session, GivesATapThatIsConstant) {
  Builder b;
  b.input("x", testing::dims({-1, 2})).numbers("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.node("Transpose", {"w"}, {"wt"});
  b.node("MatMul", {"x", "wt"}, {"y"});
  b.output("y");
  const std::vector<std::string> taps = {"wt"};
  Session session(b.model, {.taps = taps});
  const TensorMap feeds = {{"x", Tensor::of<float>({1, 2}, {1, 1})}};
  EXPECT_EQ(session.run(feeds, taps).at("wt"), Tensor::of<float>({2, 3}, {1, 3, 5, 2, 4, 6}));
  int seen = 0;
  Session told(b.model, {.taps = taps, .on_sample = [&](const TapSample&) { ++seen; }});
  told.run(feeds);
  EXPECT_EQ(seen, 2);
}

/// Small variances beside large means, in whichever order a convolution leaves its channels.
TEST(Session, NormalisesNearlyConstantChannels) {
  Builder b;
  b.input("x", testing::dims({1, 16, 14, 14}));
  std::vector<float> one(16 * 16, 0.0F);
  for (std::size_t i = 0; i < 16; ++i) one[17 * i] = 1.0F;
  b.numbers("w", {16, 16, 1, 1}, one).numbers("scale", {16}, std::vector<float>(16, 1.0F));
  b.numbers("shift", {16}, std::vector<float>(16, 0.0F));
  b.node("Conv", {"x", "w"}, {"c"});
  b.node("InstanceNormalization", {"c", "scale", "shift"}, {"y"});
  b.output("y");
  std::vector<float> values = random_values(16 * 196, 3);
  for (float& value : values) value = 1.5F + 0.0005F * value;
  Session session(b.model);
  const Tensor y = session.run({{"x", Tensor::of<float>({1, 16, 14, 14}, values)}}).at("y");
  for (std::size_t c = 0; c < 16; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 196; ++i) sum += static_cast<double>(values[196 * c + i]);
    for (std::size_t i = 0; i < 196; ++i) {
      squares += std::pow(static_cast<double>(values[196 * c + i]) - sum / 196, 2);
    }
    const double wanted =
        (static_cast<double>(values[196 * c]) - sum / 196) / std::sqrt(squares / 196 + 1e-5);
    EXPECT_NEAR(y.data<float>()[196 * c], wanted, 3e-4);
  }
}

}  // namespace
}  // namespace quench
