// SPDX-License-Identifier: Apache-2.0
// Large batches that are run in slices give what whole ones give, and only where samples are apart.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kBatch = 6;
constexpr std::int64_t kWide = std::int64_t{1} << 20;  // 4 MB a sample: several do not fit

Tensor random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
  for (float& value : values) value = uniform(generator);
  return Tensor::of<float>(shape, values);
}

struct Outcome {
  Tensor y;
  int most_often = 0;  ///< how often the step that ran most often ran
};

Outcome run(const Model& model, const Tensor& x, SessionOptions options = {}) {
  std::map<std::string, int> times;
  options.on_step = [&](const StepTime& step) { ++times[std::string(step.node)]; };
  Context context;
  context.threads = 2;
  Session session(model, options, context);
  Outcome outcome{.y = session.run({{"x", x}}).at("y")};
  for (const auto& [node, count] : times) outcome.most_often = std::max(outcome.most_often, count);
  return outcome;
}

void expect_same(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const auto a = actual.data<float>();
  const auto e = expected.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], e[i], 1e-4F) << "element " << i;
}

/// Runs the model in slices and as a whole; the step that runs most often runs `times` times.
void expect_slices(const Model& model, const Tensor& x, int times) {
  const Outcome sliced = run(model, x);
  const Outcome whole = run(model, x, {.reference = true});
  EXPECT_EQ(whole.most_often, 1);
  EXPECT_EQ(sliced.most_often, times);
  expect_same(sliced.y, whole.y);
}

Builder wide_input() {
  Builder b;
  b.input("x", {{.symbol = "N"}, {.value = kWide}});
  return b;
}

Model image_network() {
  Builder b;
  b.input("x", {{.symbol = "N"}, {.value = 3}, {.value = 128}, {.value = 128}});
  b.constant("w1", random_tensor({64, 3, 3, 3}, 1));
  b.constant("w2", random_tensor({10, 64}, 2));
  b.constant("bias", random_tensor({10}, 3));
  b.node("Conv", {"x", "w1"}, {"c"}).set("pads", Ints{1, 1, 1, 1});
  b.node("Relu", {"c"}, {"r"});
  b.node("GlobalAveragePool", {"r"}, {"p"});
  b.node("Flatten", {"p"}, {"f"});
  b.node("Gemm", {"f", "w2", "bias"}, {"g"}).set("transB", std::int64_t{1});
  b.node("Softmax", {"g"}, {"y"}).set("axis", std::int64_t{-1});
  b.output("y");
  return b.model;
}

TEST(Slices, ALargeBatchOfImagesIsRunInEqualParts) {
  expect_slices(image_network(), random_tensor({kBatch, 3, 128, 128}, 4), kBatch);
}

TEST(Slices, OneSampleAndSmallBatchesAreRunAtOnce) {
  Builder b;
  b.input("x", {{.symbol = "N"}, {.value = 16}});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  expect_slices(b.model, random_tensor({kBatch, 16}, 1), 1);
  expect_slices(image_network(), random_tensor({1, 3, 128, 128}, 4), 1);
}

TEST(Slices, AReshapeThatComputesItsShapeKeepsTheRows) {
  Builder b = wide_input();
  b.constant("first", Tensor::of<std::int64_t>({1}, {0}));
  b.constant("rest", Tensor::of<std::int64_t>({2}, {1024, -1}));
  b.node("Relu", {"x"}, {"r"});
  b.node("Shape", {"r"}, {"sizes"});
  b.node("Gather", {"sizes", "first"}, {"batch"}).set("axis", std::int64_t{0});
  b.node("Concat", {"batch", "rest"}, {"shape"}).set("axis", std::int64_t{0});
  b.node("Reshape", {"r", "shape"}, {"y"});
  b.output("y");
  expect_slices(b.model, random_tensor({kBatch, kWide}, 5), kBatch);
}

/// Adds the nodes of one case: from "x", N rows of kWide numbers, to "y".
using AddNodes = std::function<void(Builder&)>;

/// None of the cases is run in slices, and all give what whole batches give.
void expect_whole(const std::map<std::string, AddNodes>& cases) {
  const Tensor x = random_tensor({kBatch, kWide}, 6);
  for (const auto& [title, add] : cases) {
    SCOPED_TRACE(title);
    Builder b = wide_input();
    add(b);
    b.output("y");
    expect_slices(b.model, x, 1);
  }
}

TEST(Slices, SamplesThatMeetAreRunTogether) {
  expect_whole({
      {"a sum over the batch",
       [](Builder& b) {
         b.constant("axes", Tensor::of<std::int64_t>({1}, {0}));
         b.node("ReduceSum", {"x", "axes"}, {"sum"}).set("keepdims", std::int64_t{1});
         b.node("Add", {"x", "sum"}, {"y"});
       }},
      {"softmax along the batch",
       [](Builder& b) { b.node("Softmax", {"x"}, {"y"}).set("axis", std::int64_t{0}); }},
      {"samples in reverse order",
       [](Builder& b) {
         for (const auto& [name, number] :
              std::map<std::string, std::int64_t>{{"start", -1}, {"end", -100}, {"axis", 0}}) {
           b.constant(name, Tensor::of<std::int64_t>({1}, {number}));
         }
         b.constant("step", Tensor::of<std::int64_t>({1}, {-1}));
         b.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
       }},
      {"a product of samples with samples",
       [](Builder& b) {
         b.node("Transpose", {"x"}, {"t"}).set("perm", Ints{1, 0});
         b.node("MatMul", {"x", "t"}, {"m"});
         b.node("MatMul", {"m", "x"}, {"p"});
         b.constant("small", Tensor::scalar(1e-7F));
         b.node("Mul", {"p", "small"}, {"y"});
       }},
      {"division by the batch",
       [](Builder& b) {
         b.node("Shape", {"x"}, {"sizes"});
         b.node("Cast", {"sizes"}, {"numbers"}).set("to", std::int64_t{1});
         b.constant("first", Tensor::of<std::int64_t>({1}, {0}));
         b.node("Gather", {"numbers", "first"}, {"batch"}).set("axis", std::int64_t{0});
         b.node("Div", {"x", "batch"}, {"y"});
       }},
  });
}

TEST(Slices, OperatorsThatKnowTheBatchAreRunTogether) {
  expect_whole({
      {"a weight for each sample",
       [](Builder& b) {
         b.constant("weights", random_tensor({kBatch, 1}, 7));
         b.node("Mul", {"x", "weights"}, {"y"});
       }},
      {"positions in the batch",
       [](Builder& b) {
         b.constant("shape", Tensor::of<std::int64_t>({4}, {-1, 1, 1024, 1024}));
         b.node("Reshape", {"x", "shape"}, {"image"});
         b.node("MaxPool", {"image"}, {"most", "where"}).set("kernel_shape", Ints{2, 2});
         b.node("Cast", {"where"}, {"y"}).set("to", std::int64_t{1});
       }},
      {"normalised over the batch",
       [](Builder& b) {
         b.constant("shape", Tensor::of<std::int64_t>({4}, {-1, 4, 512, 512}));
         b.node("Reshape", {"x", "shape"}, {"image"});
         b.numbers("ones", {4}, {1, 1, 1, 1}).numbers("zeros", {4}, {0, 0, 0, 0});
         Node& node = b.node("BatchNormalization", {"image", "ones", "zeros", "zeros", "ones"},
                             {"y", "mean", "var"});
         node.set("training_mode", std::int64_t{1});
       }},
      {"rows of other lengths",
       [](Builder& b) {
         b.constant("shape", Tensor::of<std::int64_t>({2}, {-1, kWide / 2}));
         b.constant("back", Tensor::of<std::int64_t>({2}, {-1, kWide}));
         b.node("Reshape", {"x", "shape"}, {"halves"});
         b.node("Softmax", {"halves"}, {"s"}).set("axis", std::int64_t{0});
         b.node("Reshape", {"s", "back"}, {"y"});
       }},
  });
}

TEST(Slices, ValuesBetweenAreShownForTheWholeBatch) {
  const Model model = image_network();
  Context context;
  context.threads = 2;
  Session session(model, {.taps = {"r"}}, context);
  const Tensor x = random_tensor({kBatch, 3, 128, 128}, 8);
  const std::vector<std::string> wanted = {"r", "y"};
  const TensorMap got = session.run({{"x", x}}, wanted);
  EXPECT_EQ(got.at("r").shape(), (Shape{kBatch, 64, 128, 128}));
  expect_same(got.at("y"), run(model, x, {.reference = true}).y);
}

}  // namespace
}  // namespace quench
