// SPDX-License-Identifier: Apache-2.0
// Ranges of activations where no rule names an observer: rare large values of a detector are kept,
// and values that do not matter are clipped.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "quench/error.h"
#include "quench/metrics.h"
#include "quench/quantize.h"
#include "support/paths.h"

namespace quench {
namespace {

constexpr std::int64_t kSide = 24;
constexpr std::int64_t kSamples = 40;

class Noise {
 public:
  explicit Noise(std::uint32_t seed) : generator_(seed) {}
  float operator()(float low, float high) {
    return low + (high - low) * static_cast<float>(generator_() % 4096) / 4096.0F;
  }
  Tensor tensor(const Shape& shape, float low, float high) {
    Tensor result = Tensor::zeros(DType::Float32, shape);
    for (float& each : result.mutable_data<float>()) each = (*this)(low, high);
    return result;
  }

 private:
  std::minstd_rand generator_;
};

/// Convolutions of one image channel; what they make keeps its size.
class Network {
 public:
  Network() {
    model_.ir_version = 8;
    model_.opsets[""] = 13;
    model_.graph.name = "g";
    const std::vector<Dim> dims = {{-1, "N"}, {1, ""}, {kSide, ""}, {kSide, ""}};
    model_.graph.inputs.push_back(model_.graph.add_value(
        {.name = "x", .type = ValueType::tensor(DType::Float32, dims), .declared = true}));
  }

  void conv(const std::string& from, const std::string& to, const Tensor& weight,
            std::vector<float> bias = {}) {
    std::vector<ValueId> inputs = {model_.graph.find(from),
                                   model_.graph.add_constant(to + "_w", weight)};
    if (!bias.empty()) {
      const auto size = static_cast<std::int64_t>(bias.size());
      inputs.push_back(
          model_.graph.add_constant(to + "_b", Tensor::of<float>({size}, std::move(bias))));
    }
    const std::int64_t pad = weight.shape()[2] / 2;
    model_.graph.add_node("Conv", inputs, {to})
        .set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
  }
  void then(const std::string& op, const std::string& from, const std::string& to) {
    model_.graph.add_node(op, {model_.graph.find(from)}, {to});
  }
  void output(const std::string& name) {
    const ValueId id = model_.graph.find(name);
    model_.graph[id].type.dtype = DType::Float32;
    model_.graph[id].declared = true;
    model_.graph.outputs.push_back(id);
  }
  const Model& model() const { return model_; }

 private:
  Model model_;
};

/// Scores and boxes of bright squares.
Model detector() {
  Noise noise(1);
  Network net;
  net.conv("x", "c1", noise.tensor({8, 1, 3, 3}, -0.35F, 0.45F));
  net.then("Relu", "c1", "r1");
  net.conv("r1", "c2", noise.tensor({8, 8, 3, 3}, -0.14F, 0.16F));
  net.then("Relu", "c2", "r2");
  net.conv("r2", "logits", noise.tensor({1, 8, 1, 1}, 0, 1), {-4});
  net.then("Sigmoid", "logits", "scores");
  net.conv("r2", "boxes", noise.tensor({4, 8, 1, 1}, -1, 1));
  net.output("scores");
  net.output("boxes");
  return net.model();
}

/// Dim noise, and a bright square in the samples that have one.
template <typename Has>
Tensor scenes(std::uint32_t seed, const Has& has) {
  Noise noise(seed);
  Tensor images = noise.tensor({kSamples, 1, kSide, kSide}, 0, 0.2F);
  auto pixels = images.mutable_data<float>();
  for (std::int64_t i = 0; i < kSamples; ++i) {
    if (!has(i)) continue;
    const auto row = static_cast<std::int64_t>(noise(2, 20));
    const auto column = static_cast<std::int64_t>(noise(2, 20));
    for (std::int64_t k = 0; k < 9; ++k) {
      const std::int64_t at = (i * kSide + row + k / 3) * kSide + column + k % 3;
      pixels[static_cast<std::size_t>(at)] = 5;
    }
  }
  return images;
}

/// A channel whose rare large values nothing reads widens the range of the others.
Model with_unread_channel() {
  Noise noise(2);
  Network net;
  Tensor first = noise.tensor({8, 1, 3, 3}, -0.4F, 0.4F);
  for (std::size_t i = 0; i < 9; ++i) first.mutable_data<float>()[i] = i == 4 ? 30.0F : 0.0F;
  net.conv("x", "c1", first, {-30, 0, 0, 0, 0, 0, 0, 0});
  net.then("Relu", "c1", "r1");
  Tensor second = noise.tensor({8, 8, 3, 3}, -0.2F, 0.2F);
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t k = 0; k < 9; ++k) second.mutable_data<float>()[i * 72 + k] = 0;
  }
  net.conv("r1", "c2", second);
  net.then("Relu", "c2", "r2");
  net.conv("r2", "c3", noise.tensor({8, 8, 3, 3}, -0.2F, 0.2F));
  net.then("Relu", "c3", "r3");
  net.conv("r3", "y", noise.tensor({4, 8, 1, 1}, -1, 1));
  net.output("y");
  return net.model();
}

Tensor with_rare_sparks(std::uint32_t seed) {
  Noise noise(seed);
  Tensor images = noise.tensor({kSamples, 1, kSide, kSide}, -1, 1);
  for (std::int64_t i = 0; i < kSamples; i += 8) {
    images.mutable_data<float>()[static_cast<std::size_t>(i * kSide * kSide + 125)] = 3;
  }
  return images;
}

class ChooseObserver : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("choose_observer_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(folder_);
    context_.threads = 2;
    context_.module_dir = testing::binary_dir().string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Quantises a model; an empty observer leaves the choice open.
  QuantizeReport quantized(const Model& model, const Tensor& samples, const std::string& observer) {
    save(model, path("float.onnx"));
    write_npy(samples, path("samples.npy"));
    QuantizeOptions options;
    options.data.path = path("samples.npy");
    if (!observer.empty()) options.config.global.activation_observer = observer;
    return quantize(path("float.onnx"), path("int8.onnx"), options, context_);
  }

  /// The SQNR of each output of the last quantised model on other samples.
  std::map<std::string, double> sqnr(const Model& model, const Tensor& samples) {
    Session expected(model, {}, context_);
    Session actual(load(path("int8.onnx")), {}, context_);
    const TensorMap want = expected.run({{"x", samples}});
    const TensorMap got = actual.run({{"x", samples}});
    std::map<std::string, double> result;
    for (const auto& [name, tensor] : want) {
      const auto metric = make_metric("sqnr");
      metric->add(got.at(name), tensor);
      result[name] = metric->value();
    }
    return result;
  }

  std::filesystem::path folder_;
  Context context_;
};

TEST_F(ChooseObserver, KeepsWhatADetectorFindsRarely) {
  const Model model = detector();
  // Those kept apart, the last ones, hold nothing to find.
  const Tensor seen = scenes(3, [](std::int64_t i) { return i < 8; });
  const Tensor others = scenes(4, [](std::int64_t i) { return i % 4 == 0; });
  quantized(model, seen, "min_max");
  const auto whole = sqnr(model, others);
  const QuantizeReport report = quantized(model, seen, "");
  for (const auto& [output, value] : sqnr(model, others)) {
    EXPECT_GT(value, whole.at(output) - 1) << output << " by " << report.activation_observer;
  }
  quantized(model, seen, "avg");
  EXPECT_LT(sqnr(model, others).at("scores"), whole.at("scores") - 10) << "nothing to choose wrong";
}

TEST_F(ChooseObserver, ClipsWhatNothingReads) {
  const Model model = with_unread_channel();
  const Tensor seen = with_rare_sparks(5);
  const Tensor others = with_rare_sparks(6);
  quantized(model, seen, "min_max");
  const auto whole = sqnr(model, others);
  const QuantizeReport report = quantized(model, seen, "");
  EXPECT_EQ(report.activation_observer, "avg");
  EXPECT_GT(sqnr(model, others).at("y"), whole.at("y") + 6);
}

TEST_F(ChooseObserver, TellsWhatWasTriedAndTaken) {
  const Model model = with_unread_channel();
  const QuantizeReport report = quantized(model, with_rare_sparks(5), "");
  EXPECT_EQ(report.observer_samples, 16);
  ASSERT_EQ(report.observer_trials.size(), 5U);
  int chosen = 0;
  for (const ObserverTrial& trial : report.observer_trials) {
    ASSERT_EQ(trial.outputs.size(), 1U);
    EXPECT_TRUE(trial.outputs[0].scores.contains("sqnr"));
    EXPECT_TRUE(trial.outputs[0].scores.contains("peak_sqnr"));
    if (!trial.chosen) continue;
    ++chosen;
    EXPECT_EQ(trial.observer, report.activation_observer);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(report.observer_trials.back().observer, "min_max");
  EXPECT_EQ(report.value_observers.at("r1"), "avg") << "far from the output";
  EXPECT_EQ(report.value_observers.at("y"), "min_max") << "an output clips nothing";
}

TEST_F(ChooseObserver, ANamedObserverIsTaken) {
  const QuantizeReport report = quantized(with_unread_channel(), with_rare_sparks(5), "KL");
  EXPECT_EQ(report.activation_observer, "");
  EXPECT_TRUE(report.observer_trials.empty());
  for (const auto& [value, observer] : report.value_observers) EXPECT_EQ(observer, "KL") << value;
}

TEST_F(ChooseObserver, ObserversOfSingleValuesAreTaken) {
  const Model model = with_unread_channel();
  save(model, path("float.onnx"));
  write_npy(with_rare_sparks(5), path("samples.npy"));
  QuantizeOptions options;
  options.data.path = path("samples.npy");
  options.config.value_observers = {{"r1", "hist"}};
  const QuantizeReport report = quantize(path("float.onnx"), path("int8.onnx"), options, context_);
  EXPECT_EQ(report.value_observers.at("r1"), "hist");
  EXPECT_EQ(report.value_observers.at("r2"), "mse");
  options.config.value_observers = {{"r7", "hist"}};
  EXPECT_THROW(quantize(path("float.onnx"), path("int8.onnx"), options, context_), Error);
}

}  // namespace
}  // namespace quench
