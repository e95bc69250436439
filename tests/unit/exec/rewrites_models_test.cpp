// SPDX-License-Identifier: Apache-2.0
// Every pass over every trained model: it stays well-formed, and nothing is left to fold.
#include <algorithm>
#include <array>
#include <filesystem>

#include "support/paths.h"
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

constexpr std::array<std::string_view, 7> kAll = {
    "inline_functions", "lift_constants", "remove_identity", "fold_batchnorm",
    "fuse_patterns",    "fuse_attention", "fuse_kernels"};

std::ptrdiff_t count(const Model& model, std::string_view op, std::string_view domain = "") {
  return std::ranges::count_if(model.graph.nodes, [&](const Node& node) {
    return node.op_type == op && node.domain == domain;
  });
}

/// The model after all passes.
Model prepared(const std::string& name, const passes::PassOptions& options = {}) {
  Model model = load((shared_dir() / "models" / name).string());
  infer_types(model);
  const std::vector<ValueId> outputs = model.graph.outputs;
  std::vector<std::string> names;
  for (const ValueId id : outputs) names.push_back(model.graph[id].name);
  exec::rewrites::run(model, kAll, options, passes::Checks::Verify);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(model.graph[model.graph.outputs[i]].name, names[i]);
  }
  return model;
}

class Models : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared_dir() / "models" / "mobilenet_v2.onnx")) {
      GTEST_SKIP() << "no shared models";
    }
  }
};

TEST_F(Models, NoBatchNormIsLeftAndActivationsAreFused) {
  struct Case {
    const char* name;
    std::ptrdiff_t fused_convs;
    std::vector<std::string_view> gone;
  };
  const std::vector<Case> cases = {
      {"ad01_autoencoder_bn.onnx", 0, {"Relu"}},
      {"dscnn_kws_bn.onnx", 9, {"Relu"}},
      {"mobilenet_v1_025_vww_bn.onnx", 27, {"Relu"}},
      {"mobilenet_v2.onnx", 45, {"Clip", "Add"}},
      {"mobilenet_v2_bn_features.onnx", 46, {"Relu", "Add"}},
      {"pplcnet_x0_25_textline_ori.onnx", 31, {"HardSigmoid", "Relu"}},
      {"ppocr_v2_cls.onnx", 45, {"Clip", "Div", "HardSigmoid", "Relu"}},
      {"ppocrv4_det.onnx", 40, {"Clip", "Div"}},
      {"resnet8_cifar10_bn.onnx", 7, {"Relu", "Add"}},
      {"squeezenet1.1.onnx", 26, {"Relu"}},
      {"rfb320/rfb320.onnx", 35, {"Relu"}},
  };
  for (const Case& each : cases) {
    const Model model = prepared(each.name);
    EXPECT_EQ(count(model, "BatchNormalization"), 0) << each.name;
    EXPECT_GE(count(model, "Conv", "quench.exec"), each.fused_convs) << each.name;
    for (const std::string_view op : each.gone) EXPECT_EQ(count(model, op), 0) << each.name << op;
  }
}

TEST_F(Models, TransformerGetsItsLayerNorms) {
  const Model model = prepared("use_lite.onnx");
  EXPECT_EQ(count(model, "LayerNormalization", "quench.exec"), 4);
  EXPECT_EQ(count(model, "Sqrt"), 0);
  EXPECT_GE(count(model, "MatMul", "quench.exec"), 12);
}

TEST_F(Models, EveryTappedValueSurvives) {
  const Model model = load((shared_dir() / "models" / "ppocr_v2_cls.onnx").string());
  passes::PassOptions options;
  for (const Node& node : model.graph.nodes) {
    if (node.op_type != "Constant") options.keep.insert(model.graph[node.outputs[0]].name);
  }
  const Model result = prepared("ppocr_v2_cls.onnx", options);
  for (const std::string& name : options.keep) {
    const ValueId id = result.graph.find(name);
    ASSERT_NE(id, kNoValue) << name;
  }
}

}  // namespace
}  // namespace quench::testing
