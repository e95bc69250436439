// SPDX-License-Identifier: Apache-2.0
// A network whose linear layers are split over ranks, trained in a loop of one's own: gradients and
// scales are those of the whole network. Ranks are threads here.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "quench/qat.h"
#include "quench/ranks.h"

namespace quench {
namespace {

constexpr std::int64_t kIn = 8;
constexpr std::int64_t kInner = 6;
constexpr std::int64_t kOut = 5;

Tensor noise(const Shape& shape, std::uint32_t seed) {
  Tensor result = Tensor::zeros(DType::Float32, shape);
  std::uint32_t state = seed * 2654435761U + 1;
  for (float& each : result.mutable_data<float>()) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<float>(state >> 8U) / 8388608.0F - 1.0F;
  }
  return result;
}

/// Rows or columns of a matrix.
Tensor part(const Tensor& whole, int axis, int ranks, int rank) {
  const auto all = torch::from_blob(const_cast<float*>(whole.data<float>().data()),
                                    at::IntArrayRef(whole.shape()));
  const at::Tensor own = all.chunk(ranks, axis)[static_cast<std::size_t>(rank)].contiguous();
  return Tensor::of<float>(own.sizes().vec(),
                           std::span(own.data_ptr<float>(), static_cast<std::size_t>(own.numel())));
}

/// Columns, an activation, rows, and the sum over ranks.
Model perceptron(int ranks, int rank) {
  Model model;
  model.ir_version = 8;
  model.opsets = {{"", 17}, {"com.microsoft", 1}};
  Graph& graph = model.graph;
  const std::vector<Dim> dims = {{-1, "n"}, {kIn, ""}};
  graph.inputs = {graph.add_value(
      {.name = "x", .type = ValueType::tensor(DType::Float32, dims), .declared = true})};
  const ValueId up = graph.add_constant("up", part(noise({kIn, kInner}, 1), 1, ranks, rank));
  const ValueId bias = graph.add_constant("bias", part(noise({kInner}, 2), 0, ranks, rank));
  const ValueId down = graph.add_constant("down", part(noise({kInner, kOut}, 3), 0, ranks, rank));
  graph.add_node("Gemm", {graph.inputs[0], up, bias}, {"inner"});
  graph.add_node("Relu", {graph.find("inner")}, {"active"});
  graph.add_node("MatMul", {graph.find("active"), down}, {ranks > 1 ? "part" : "y"});
  if (ranks > 1) {
    graph.add_node("AllReduce", {graph.find("part")}, {"y"}).domain = "com.microsoft";
  }
  graph.outputs = {graph.find("y")};
  return model;
}

struct Outcome {
  std::map<std::string, at::Tensor> gradients;
  std::map<std::string, std::vector<float>> weight_scales;
  std::map<std::string, float> scales;
};

Outcome train(const Model& model, const Context& context, QAT& qat) {
  TrainableModel trained = qat.quantize(model);
  const Tensor batch = noise({4, kIn}, 7);
  const at::Tensor x = torch::from_blob(const_cast<float*>(batch.data<float>().data()), {4, kIn});
  trained.forward(x).square().sum().backward();
  Outcome outcome;
  for (const Trained& each : trained.named_parameters()) {
    outcome.gradients[each.name] = each.tensor.grad().clone();
  }
  const Model written = trained.convert();
  for (const Node& node : written.graph.nodes) {
    const Tensor* scale = written.graph.constant(node.input(1));
    const std::string& name = written.graph[node.inputs[0]].name;
    if (node.op_type == "DequantizeLinear" && written.graph.constant(node.inputs[0]) != nullptr) {
      outcome.weight_scales[name.substr(0, name.find('_'))] = to_float(*scale);
    }
    if (node.op_type == "QuantizeLinear") outcome.scales[name] = to_float(*scale)[0];
  }
  (void)context;
  return outcome;
}

/// The same on every rank of a split network.
std::vector<Outcome> train_split(int ranks, const std::function<void(QAT&)>& set = {}) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  const int port = 20000 + static_cast<int>(::getpid()) % 20000;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Context context{.threads = 1};
        context.ranks = join_ranks({.rank = rank,
                                    .size = ranks,
                                    .port = port,
                                    .timeout_seconds = 30,
                                    .tensor_parallel = true},
                                   context);
        QAT qat({}, {}, {}, {}, {}, context);
        if (set) set(qat);
        outcomes[static_cast<std::size_t>(rank)] = train(perceptron(ranks, rank), context, qat);
        context.ranks->leave();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

bool can_join() {
  try {
    (void)join_ranks({.port = 20000 + static_cast<int>(::getpid() + 7) % 20000}, {});
    return true;
  } catch (const Error& error) {
    return std::string_view(error.what()).find("libgloo-dev") == std::string_view::npos;
  }
}

TEST(SplitTraining, GradientsAndScalesAreThoseOfTheWhole) {
  if (!can_join()) GTEST_SKIP() << "built without Gloo";
  QAT plain;
  const Outcome whole = train(perceptron(1, 0), {}, plain);
  const std::vector<Outcome> parts = train_split(2);
  const auto joined = [&](const std::string& name, int axis) {
    return at::cat({parts[0].gradients.at(name), parts[1].gradients.at(name)}, axis);
  };
  for (const auto& [name, axis] :
       {std::pair{"up", 1}, std::pair{"bias", 0}, std::pair{"down", 0}}) {
    EXPECT_TRUE(at::allclose(joined(name, axis), whole.gradients.at(name), 1e-4, 1e-5)) << name;
  }
  for (const Outcome& each : parts) {
    EXPECT_EQ(each.weight_scales.at("down"), whole.weight_scales.at("down"));
    EXPECT_EQ(each.scales.at("x"), whole.scales.at("x"));
    EXPECT_FLOAT_EQ(each.scales.at("active"), whole.scales.at("active"));
  }
  std::vector<float> columns = parts[0].weight_scales.at("up");
  columns.insert(columns.end(), parts[1].weight_scales.at("up").begin(),
                 parts[1].weight_scales.at("up").end());
  EXPECT_EQ(columns, whole.weight_scales.at("up"));
}

/// A quanter whose scale is always a tenth.
class Tenths final : public Quanter {
 public:
  explicit Tenths(QuantSpec spec) : spec_(std::move(spec)) {}
  at::Tensor forward(const at::Tensor& x) override { return x; }
  QuantParams params() const override {
    QuantSpec spec = spec_;
    spec.axis = -1;
    return {.spec = spec, .scale = {0.1F}, .zero_point = {0}};
  }

 private:
  QuantSpec spec_;
};

TEST(SplitTraining, LayersAreMappedByTheirKind) {
  if (!can_join()) GTEST_SKIP() << "built without Gloo";
  const QuantedLayer tenths(
      [](const QuanterSetup& setup) { return std::make_unique<Tenths>(setup.spec); }, {});
  for (const auto& [source, mapped, other] : {std::tuple{"RowParallelLinear", "down", "up"},
                                              std::tuple{"ColumnParallelLinear", "up", "down"}}) {
    const std::string name = source;
    for (const Outcome& each :
         train_split(2, [&](QAT& qat) { qat.add_qat_layer_mapping(name, tenths); })) {
      EXPECT_EQ(each.weight_scales.at(mapped), std::vector<float>{0.1F}) << source;
      EXPECT_NE(each.weight_scales.at(other).front(), 0.1F) << source;
    }
  }
  EXPECT_NO_THROW(QAT().add_qat_layer_mapping("RowParallelLinear", "QuantedRowParallelLinear"));
}

}  // namespace
}  // namespace quench
