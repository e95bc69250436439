// SPDX-License-Identifier: Apache-2.0
// Operators that models are trained through: gradients of their weights, and of a layer before
// them, are those that finite differences tell; weights come back under their names, bit for bit.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "quench/qat.h"

namespace quench {
namespace {

/// Numbers between -1 and 1 that depend on nothing but the seed.
Tensor noise(const Shape& shape, std::uint32_t seed, float size = 0.5F) {
  std::uint32_t state = seed * 2654435761U + 1;
  Tensor result = Tensor::zeros(DType::Float32, shape);
  for (float& each : result.mutable_data<float>()) {
    state = state * 1664525U + 1013904223U;
    each = size * (static_cast<float>(state >> 8U) / 8388608.0F - 1.0F);
  }
  return result;
}

/// A graph in the making.
struct Builder {
  Model model;
  std::uint32_t seed = 1;

  explicit Builder(const std::vector<Dim>& input) {
    model.ir_version = 8;
    model.opsets[""] = 17;
    model.graph.name = "g";
    model.graph.inputs.push_back(model.graph.add_value(
        {.name = "x", .type = ValueType::tensor(DType::Float32, input), .declared = true}));
  }
  Graph& graph() { return model.graph; }
  ValueId x() { return graph().inputs[0]; }
  ValueId weight(const std::string& name, const Shape& shape, float size = 0.5F) {
    return graph().add_constant(name, noise(shape, seed++, size));
  }
  ValueId ints(const std::string& name, const std::vector<std::int64_t>& values) {
    return graph().add_constant(
        name, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }
  Node& node(const std::string& type, const std::vector<ValueId>& inputs,
             const std::string& output = "") {
    return graph().add_node(type, inputs, {output.empty() ? "v" + std::to_string(seed++) : output});
  }
  ValueId last() { return graph().nodes.back().outputs[0]; }
  /// A convolution of 3 channels into 4, so that something before an operator learns.
  ValueId conv() {
    node("Conv", {x(), weight("before", {4, 3, 1, 1}), weight("before_bias", {4})});
    return last();
  }
  ValueId matmul() {
    node("MatMul", {x(), weight("before", {6, 8})});
    return last();
  }
};

using Make = std::function<void(Builder&)>;
struct Operator {
  std::string name;
  std::vector<Dim> input;
  Make make;
};

const std::vector<Dim> kImages = {{2, ""}, {3, ""}, {6, ""}, {6, ""}};
const std::vector<Dim> kRows = {{2, ""}, {5, ""}, {6, ""}};  ///< batch, time, features

Operator pointwise(const std::string& type, const std::function<void(Node&)>& set = {}) {
  return {type, kImages, [=](Builder& b) {
            Node& node = b.node(type, {b.conv()});
            if (set) set(node);
          }};
}

void recurrent(Builder& b, const std::string& type, std::int64_t gates) {
  constexpr std::int64_t kHidden = 4;
  b.node("Transpose", {b.x()}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  const ValueId x = b.last();
  Node& node = b.node(type, {x, b.weight("w", {2, gates * kHidden, 6}),
                             b.weight("r", {2, gates * kHidden, kHidden}),
                             b.weight("b", {2, 2 * gates * kHidden})});
  node.set("hidden_size", kHidden);
  node.set("direction", std::string("bidirectional"));
  if (type == "GRU") node.set("linear_before_reset", std::int64_t{1});
}

void attention(Builder& b) {
  const ValueId keys = b.weight("keys", {6, 8});
  const ValueId values = b.weight("values", {6, 8});
  const ValueId queries = b.matmul();
  b.node("MatMul", {b.x(), keys}, "k");
  b.node("Transpose", {b.last()}, "kt").set("perm", std::vector<std::int64_t>{0, 2, 1});
  b.node("MatMul", {queries, b.last()}, "scores");
  b.node("Softmax", {b.last()}, "shares").set("axis", std::int64_t{-1});
  const ValueId shares = b.last();
  b.node("MatMul", {b.x(), values}, "val");
  b.node("MatMul", {shares, b.last()}, "mixed");
}

void resize(Builder& b, const std::string& mode) {
  const ValueId before = b.conv();
  const ValueId scales =
      b.graph().add_constant("scales", Tensor::of<float>({4}, {1.0F, 1.0F, 2.0F, 2.0F}));
  Node& node = b.node("Resize", {before, kNoValue, scales});
  node.set("mode", mode);
  node.set("coordinate_transformation_mode",
           std::string(mode == "nearest" ? "asymmetric" : "half_pixel"));
}

void embedding(Builder& b) {
  // Rows of a table, chosen by the signs of x, so that the input stays a float.
  const ValueId table = b.weight("table", {3, 8});
  b.node("Sign", {b.x()});
  b.node("Cast", {b.last()}).set("to", std::int64_t{7});
  const ValueId one = b.graph().add_constant("one", Tensor::of<std::int64_t>({}, {1}));
  b.node("Add", {b.last(), one});
  b.node("Gather", {table, b.last()});
}

std::vector<Operator> layers() {
  return {
      {"Conv", kImages,
       [](Builder& b) {
         b.node("Conv", {b.x(), b.weight("w", {4, 3, 3, 3}), b.weight("b", {4})})
             .set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
       }},
      {"depthwise Conv", kImages,
       [](Builder& b) {
         const ValueId before = b.conv();
         b.node("Conv", {before, b.weight("w", {4, 1, 3, 3})}).set("group", std::int64_t{4});
       }},
      {"ConvTranspose", kImages,
       [](Builder& b) {
         b.node("ConvTranspose", {b.x(), b.weight("w", {3, 4, 2, 2}), b.weight("b", {4})})
             .set("strides", std::vector<std::int64_t>{2, 2});
       }},
      {"Gemm",
       {{4, ""}, {6, ""}},
       [](Builder& b) {
         b.node("Gemm", {b.x(), b.weight("w", {5, 6}), b.weight("b", {5})})
             .set("transB", std::int64_t{1});
       }},
      {"MatMul", kRows, [](Builder& b) { b.matmul(); }},
      {"BatchNormalization", kImages,
       [](Builder& b) {
         // Not behind a layer: it is not folded, and keeps its statistics.
         const ValueId mean = b.weight("mean", {3});
         const ValueId variance =
             b.graph().add_constant("var", Tensor::of<float>({3}, {0.5F, 1.0F, 2.0F}));
         b.node("Relu", {b.x()});
         b.node("BatchNormalization",
                {b.last(), b.weight("scale", {3}), b.weight("shift", {3}), mean, variance});
       }},
      {"LayerNormalization", kRows,
       [](Builder& b) {
         const ValueId before = b.matmul();
         b.node("LayerNormalization", {before, b.weight("scale", {8}), b.weight("shift", {8})});
       }},
      {"attention", kRows, attention},
  };
}

std::vector<Operator> between_layers() {
  const auto set_int = [](const char* key, std::int64_t value) {
    return [=](Node& node) { node.set(key, value); };
  };
  return {
      {"AveragePool", kImages,
       [](Builder& b) {
         b.node("AveragePool", {b.conv()}).set("kernel_shape", std::vector<std::int64_t>{2, 2});
       }},
      {"MaxPool", kImages,
       [](Builder& b) {
         b.node("MaxPool", {b.conv()}).set("kernel_shape", std::vector<std::int64_t>{2, 2});
       }},
      pointwise("GlobalAveragePool"),
      pointwise("Relu"),
      pointwise("LeakyRelu"),
      pointwise("Sigmoid"),
      pointwise("Tanh"),
      pointwise("HardSigmoid"),
      pointwise("HardSwish"),
      pointwise("Elu"),
      pointwise("Softplus"),
      pointwise("Erf"),
      pointwise("Softmax", set_int("axis", 1)),
      {"PRelu", kImages,
       [](Builder& b) {
         b.node("PRelu", {b.conv(), b.weight("slope", {4, 1, 1})});
       }},
      {"Resize nearest", kImages, [](Builder& b) { resize(b, "nearest"); }},
      {"Resize linear", kImages, [](Builder& b) { resize(b, "linear"); }},
      {"Concat", kImages,
       [](Builder& b) {
         b.node("Concat", {b.conv(), b.x()}).set("axis", std::int64_t{1});
       }},
      {"embedding", kRows, embedding},
      {"LSTM", kRows, [](Builder& b) { recurrent(b, "LSTM", 4); }},
      {"GRU", kRows, [](Builder& b) { recurrent(b, "GRU", 3); }},
      {"Add and Mul", kImages,
       [](Builder& b) {
         const ValueId before = b.conv();
         b.node("Mul", {before, b.weight("by", {4, 1, 1})});
         b.node("Add", {b.last(), before});
       }},
  };
}

std::vector<Operator> operators() {
  std::vector<Operator> all = layers();
  for (Operator& each : between_layers()) all.push_back(std::move(each));
  return all;
}

Model model_of(const Operator& each) {
  Builder builder(each.input);
  each.make(builder);
  builder.graph().outputs.push_back(builder.last());
  verify(builder.model);
  infer_types(builder.model);
  return builder.model;
}

at::Tensor tensor_of(const Tensor& from) {
  return at::tensor(at::ArrayRef<float>(from.data<float>().data(), from.data<float>().size()))
      .reshape(from.shape());
}

/// The loss of a model: its outputs, weighted.
double loss_of(TrainableModel& model, const at::Tensor& x, at::Tensor* loss = nullptr) {
  const at::Tensor y = model.forward(x);
  Shape shape = y.sizes().vec();
  const at::Tensor sum = (y * tensor_of(noise(shape, 99, 1.0F))).sum();
  if (loss != nullptr) *loss = sum;
  return sum.item<double>();
}

/// By default only layers with weights are quantised, and a model must have one.
QatConfig of_all_types(const Model& model) {
  QatConfig config;
  for (const Node& node : model.graph.nodes) config.quantizable_layer_type.push_back(node.op_type);
  return config;
}

TEST(TrainedOperators, HaveTheGradientsOfFiniteDifferences) {
  for (const Operator& each : operators()) {
    SCOPED_TRACE(each.name);
    const Model model = model_of(each);
    TrainableModel trained = QAT(of_all_types(model)).quantize(model);
    trained.quantize(false);
    Shape shape;
    for (const Dim& dim : each.input) shape.push_back(dim.value);
    const at::Tensor x = tensor_of(noise(shape, 7, 1.0F));
    at::Tensor loss;
    loss_of(trained, x, &loss);
    loss.backward();
    std::size_t learned = 0;
    for (const Trained& parameter : trained.named_parameters()) {
      if (!parameter.tensor.grad().defined()) continue;  // of a quanter, which is off
      ++learned;
      const at::NoGradGuard no_gradients;
      const at::Tensor along = tensor_of(noise(parameter.tensor.sizes().vec(), 31, 1.0F));
      const at::Tensor kept = parameter.tensor.clone();
      // Small enough that hardly any Relu changes sides, large enough for floats.
      constexpr double kStep = 2e-3;
      at::Tensor(parameter.tensor).copy_(kept + along * kStep);
      const double above = loss_of(trained, x);
      at::Tensor(parameter.tensor).copy_(kept - along * kStep);
      const double below = loss_of(trained, x);
      at::Tensor(parameter.tensor).copy_(kept);
      const double slope = (above - below) / (2 * kStep);
      const auto own = (parameter.tensor.grad() * along).sum().item<double>();
      const auto size = (parameter.tensor.grad() * along).abs().sum().item<double>();
      EXPECT_NEAR(own, slope, 0.01 * size + 1e-3) << parameter.name;
      EXPECT_GT(size, 0) << parameter.name;
    }
    EXPECT_GT(learned, 0U);
  }
}

TEST(TrainedOperators, GiveTheirWeightsBackBitForBit) {
  for (const Operator& each : operators()) {
    SCOPED_TRACE(each.name);
    const Model model = model_of(each);
    TrainableModel trained = QAT(of_all_types(model)).quantize(model);
    trained.quantize(false);
    for (const Trained& parameter : trained.named_parameters()) {
      if (model.graph.find(parameter.name) == kNoValue) continue;
      const at::NoGradGuard no_gradients;
      at::Tensor(parameter.tensor).add_(0.125);
    }
    const std::string path = ::testing::TempDir() + "/trained_operator.onnx";
    save(trained.float_model(), path);
    const Model read = load(path);
    std::size_t compared = 0;
    for (const Trained& parameter : trained.named_parameters()) {
      const Tensor* own = read.graph.constant(read.graph.find(parameter.name));
      if (own == nullptr) continue;
      ++compared;
      const at::Tensor wanted = parameter.tensor.detach().contiguous();
      ASSERT_EQ(own->size(), wanted.numel()) << parameter.name;
      EXPECT_TRUE(std::equal(own->data<float>().begin(), own->data<float>().end(),
                             wanted.data_ptr<float>()))
          << parameter.name;
    }
    EXPECT_GT(compared, 0U);
  }
}

/// A quanter of a user's own: rounds to tenths.
class Tenths final : public Quanter {
 public:
  explicit Tenths(const QuanterSetup& setup) : spec_(setup.spec) { spec_.axis = -1; }
  at::Tensor forward(const at::Tensor& x) override {
    return x + (at::clamp(at::round(x * 10), spec_.q_min(), spec_.q_max()) / 10 - x).detach();
  }
  QuantParams params() const override {
    return {.spec = spec_, .scale = {0.1F}, .zero_point = {0}};
  }

 private:
  QuantSpec spec_;
};

TEST(QuantConfig, TakesQuantersWhereItTakesObservers) {
  const Model model = model_of(operators().front());
  QatConfig config;
  config.config.by_type["Conv"].weight_observer = "tenths";
  config.config.by_type["Conv"].activation_observer = "pact";
  config.custom_quanters["tenths"] = [](const QuanterSetup& setup) {
    return std::make_unique<Tenths>(setup);
  };
  const QAT qat(config);
  TrainableModel trained = qat.quantize(model);
  std::vector<std::string> names;
  for (const Trained& each : trained.named_parameters()) names.push_back(each.name);
  EXPECT_NE(std::ranges::find(names, "x/bound"), names.end());
  trained.forward(tensor_of(noise({2, 3, 6, 6}, 7, 1.0F)));
  const Model written = trained.convert();
  const auto dq = std::ranges::find_if(written.graph.nodes, [&](const Node& node) {
    return node.op_type == "DequantizeLinear" &&
           written.graph.constant(node.inputs[0]) != nullptr &&
           written.graph.constant(node.inputs[0])->rank() == 4;
  });
  ASSERT_NE(dq, written.graph.nodes.end());
  EXPECT_EQ(to_float(*written.graph.constant(dq->inputs[1])), std::vector<float>{0.1F});
}

/// The scale of the first weight of four dimensions in a quantised model; 0 where there is none.
float weight_scale(const Model& written) {
  for (const Node& node : written.graph.nodes) {
    const Tensor* stored = written.graph.constant(node.input(0));
    if (node.op_type != "DequantizeLinear" || stored == nullptr || stored->rank() != 4) continue;
    return to_float(*written.graph.constant(node.inputs[1])).front();
  }
  return 0;
}

TEST(QAT, LayersOfATypeBecomeTheMappedLayer) {
  const Model model = model_of(operators().front());
  const at::Tensor batch = tensor_of(noise({2, 3, 6, 6}, 7, 1.0F));
  const QuantedLayer tenths(
      [](const QuanterSetup& setup) { return std::make_unique<Tenths>(setup); }, {});
  QatConfig config;
  config.quantizable_layer_type = {"Linear"};
  const auto scale_with = [&](const std::string& source, const QuantedLayer& target) {
    QAT qat(config);
    if (!source.empty()) qat.add_qat_layer_mapping(source, target);
    TrainableModel trained = qat.quantize(model);
    trained.forward(batch);
    return weight_scale(trained.convert());
  };
  EXPECT_THROW(scale_with("", tenths), Error) << "it has no Linear";
  EXPECT_EQ(scale_with("Conv2D", tenths), 0.1F) << "by the layer's name";
  EXPECT_EQ(scale_with("Conv", tenths), 0.1F) << "by the operator's name";
  const float usual = scale_with("Conv2D", "QuantedConv2D");
  EXPECT_GT(usual, 0);
  EXPECT_NE(usual, 0.1F);
  EXPECT_THROW(QAT().add_qat_layer_mapping("Conv2D", "QuantedConv"), Error);
}

TEST(QuantConfig, LsqWeightIsPerTensorAndChannelWiseIsNot) {
  const Model model = model_of(operators().front());
  for (const auto& [type, scales] :
       {std::pair{"lsq_weight", 1}, std::pair{"channel_wise_lsq_weight", 4},
        std::pair{"abs_max", 1}, std::pair{"channel_wise_abs_max", 4}}) {
    QatConfig config;
    config.weight_quantize_type = type;
    const QAT qat(config);
    TrainableModel trained = qat.quantize(model);
    trained.forward(tensor_of(noise({2, 3, 6, 6}, 7, 1.0F)));
    const Model written = trained.convert();
    for (const Node& node : written.graph.nodes) {
      const Tensor* stored = written.graph.constant(node.input(0));
      if (node.op_type != "DequantizeLinear" || stored == nullptr || stored->rank() != 4) continue;
      EXPECT_EQ(written.graph.constant(node.inputs[1])->size(), scales) << type;
    }
  }
}

}  // namespace
}  // namespace quench
