// SPDX-License-Identifier: Apache-2.0
// quant_post_dynamic: PaddleSlim's parameters, its folders, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>

#include "quench/error.h"
#include "quench/paddleslim.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

class PostDynamic : public ::testing::Test {
 protected:
  PostDynamic() : folder_(fs::temp_directory_path() / fs::path(unique())) {
    fs::create_directories(folder_);
    Model model;
    model.opsets[""] = 13;
    Graph& graph = model.graph;
    graph.name = "g";
    const ValueId x = graph.add_value(
        {.name = "x", .type = ValueType::tensor(DType::Float32, {{{2, ""}, {3, ""}}})});
    graph.inputs.push_back(x);
    const ValueId w =
        graph.add_constant("w", Tensor::of<float>({3, 2}, {1, -2, 0.3F, 0.4F, 5, -0.6F}));
    graph.add_node("MatMul", {x, w}, {"y"});
    graph.outputs.push_back(graph.find("y"));
    save(model, (folder_ / "net.onnx").string());
    options_.model_dir = folder_.string();
    options_.save_model_dir = (folder_ / "out").string();
  }
  ~PostDynamic() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  static std::string unique() {
    return std::string("quench_post_dynamic_") +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  ErrorKind refused() const {
    try {
      quant_post_dynamic(options_);
    } catch (const Error& error) {
      return error.kind();
    }
    ADD_FAILURE() << "not refused";
    return ErrorKind::Internal;
  }

  fs::path folder_;
  QuantPostDynamicOptions options_;
};

TEST_F(PostDynamic, WritesBothModels) {
  options_.generate_test_model = true;
  const QuantizeReport report = quant_post_dynamic(options_);
  ASSERT_EQ(report.weights.size(), 1U);
  EXPECT_EQ(report.weights[0].bits, 8);
  const Model made = load((folder_ / "out/quantized_model/model.onnx").string());
  const Tensor* integers = made.graph.constant(made.graph.find("w_quantized"));
  ASSERT_NE(integers, nullptr);
  // scale = max|w| / 127 for each column; q = round(w / scale).
  EXPECT_EQ(*integers, Tensor::of<std::int8_t>({3, 2}, {25, -127, 8, 25, 127, -38}));
  const Model test = load((folder_ / "out/test_model/model.onnx").string());
  const Tensor* floats = test.graph.constant(test.graph.find("w"));
  ASSERT_NE(floats, nullptr);
  EXPECT_FLOAT_EQ(floats->data<float>()[0], 25 * (5.0F / 127));
}

TEST_F(PostDynamic, RefusesWhatItCannotDo) {
  options_.weight_bits = 17;
  EXPECT_EQ(refused(), ErrorKind::Usage);
  options_.weight_bits = 8;
  options_.threshold_rate = 0.1;
  EXPECT_EQ(refused(), ErrorKind::Unsupported);
  options_.threshold_rate = 0;
  options_.weight_quantize_type = "range_abs_max";
  EXPECT_EQ(refused(), ErrorKind::Usage);
  options_.weight_quantize_type = "abs_max";
  options_.quantizable_op_type = {"conv2d"};
  EXPECT_EQ(refused(), ErrorKind::BadConfig);
}

}  // namespace
}  // namespace quench
