// SPDX-License-Identifier: Apache-2.0
// Weights stay in the mapped file where they can, and are always aligned for their type.
#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/onnx/lift.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

/// The weight of a model in which `padding` bytes of text stand before it.
Tensor weight_after(int padding) {
  onnx::ModelProto proto = small_model();
  proto.set_producer_name(std::string(static_cast<std::size_t>(padding), 'p'));
  add_weight(*proto.mutable_graph(), "w", std::vector<float>(1000, 0.5F));
  const Model model = load_proto(proto);
  return model.graph[model.graph.find("w")].constant.value();
}

TEST(ZeroCopy, AlignedWeightsAreViewsOfTheFileAndOthersAreCopies) {
  int views = 0;
  for (int padding = 0; padding < 4; ++padding) {
    const Tensor weight = weight_after(padding);
    const auto address = reinterpret_cast<std::uintptr_t>(weight.bytes().data());
    EXPECT_EQ(address % alignof(float), 0U);
    EXPECT_EQ(weight.data<float>()[999], 0.5F);
    // Copies are aligned to 64 bytes; so far into a page a view can be, too, but not in all cases.
    views += address % 64 != 0 ? 1 : 0;
  }
  EXPECT_EQ(views, 1);
}

TEST(ZeroCopy, WeightsOutliveTheFileAndTheModel) {
  const Tensor weight = weight_after(0);  // the folder is gone by now
  EXPECT_EQ(weight.data<float>()[500], 0.5F);
}

TEST(Lift, LeavesTheBytesOfTensorsBehind) {
  onnx::ModelProto proto = small_model();
  const std::size_t before = proto.ByteSizeLong();
  add_weight(*proto.mutable_graph(), "w", std::vector<float>(100'000, 1));
  auto& typed = add_weight(*proto.mutable_graph(), "t", {});
  typed.clear_raw_data();
  for (int i = 0; i < 100'000; ++i) typed.add_float_data(1);
  auto& attribute = *proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_type(4);
  *attribute.mutable_t() = proto.graph().initializer(0);
  const std::string file = proto.SerializeAsString();
  const std::string shell = onnx::lift(std::as_bytes(std::span(file)));
  EXPECT_GT(file.size(), 1'200'000U);
  EXPECT_LT(shell.size(), before + 200);
}

TEST(Lift, SpliceBringsThemBackWithoutACopy) {
  onnx::ModelProto proto = small_model();
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.mutable_quench_payload()->set_field(9);
  const std::string weights(1000, 'w');
  const auto bytes = std::as_bytes(std::span(weights));
  const onnx::Rope rope = onnx::splice(proto.SerializeAsString(), std::span(&bytes, 1));
  std::string text;
  bool borrowed = false;
  for (const auto& piece : rope.pieces) {
    text += piece.text;
    text.append(reinterpret_cast<const char*>(piece.view.data()), piece.view.size());
    borrowed = borrowed || piece.view.data() == bytes.data();
  }
  EXPECT_TRUE(borrowed);
  EXPECT_EQ(text.size(), rope.size);
  ASSERT_TRUE(proto.ParseFromString(text));
  EXPECT_EQ(proto.graph().initializer(0).raw_data(), weights);
  EXPECT_FALSE(proto.graph().initializer(0).has_quench_payload());
}

}  // namespace
}  // namespace quench::testing
