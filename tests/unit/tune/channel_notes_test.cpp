// SPDX-License-Identifier: Apache-2.0
// Notes on channels: what is written is read back, and what nobody wrote is refused.
#include "tune/channel_notes.h"

#include <gtest/gtest.h>

#include "quench/error.h"

namespace quench::testing {
namespace {

Model with_values(const std::vector<std::string>& names) {
  Model model;
  for (const std::string& name : names) model.graph.add_value({.name = name});
  return model;
}

Model with_note(const std::string& key, const std::string& text) {
  Model model;
  model.metadata.emplace_back(key, text);
  return model;
}

TEST(ChannelNotes, AreReadBack) {
  Model model = with_values({"a", "b"});
  const std::vector<double> scales = {1, 0.37, 1e-6, 5e6};
  note_channels(model,
                {.padded = {{"a", 4}, {"added", 9}}, .scaled = {{{"a", "new", "b"}, scales}}},
                model.graph);
  const ChannelNotes notes = read_channel_notes(model);
  EXPECT_EQ(notes.padded, (std::map<std::string, std::int64_t>{{"a", 4}}));
  ASSERT_EQ(notes.scaled.size(), 1U);
  EXPECT_EQ(notes.scaled[0].values, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(notes.scaled[0].scales.size(), scales.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    EXPECT_NEAR(notes.scaled[0].scales[i] / scales[i], 1, 1e-4);
  }
  EXPECT_EQ(notes.scaled[0].scales[0], 1);
}

TEST(ChannelNotes, AreUndoneChannelByChannel) {
  Model model = with_values({"a"});
  note_channels(model, {.padded = {{"a", 2}}, .scaled = {{{"a"}, {2, 8}}}}, model.graph);
  const ChannelRestorer restorer(model, "m.onnx");
  const Tensor padded = Tensor::of<float>({2, 3, 2}, {1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0});
  const Tensor want = Tensor::of<float>({2, 2, 2}, {2, 4, 24, 32, 10, 12, 56, 64});
  EXPECT_EQ(restorer.restored("a", padded), want);
  EXPECT_EQ(restorer.restored("other", padded), padded);
  EXPECT_THROW(restorer.restored("a", Tensor::of<float>({1, 1}, {1})), Error);
  EXPECT_THROW(restorer.restored("a", Tensor::of<float>({2}, {1, 2})), Error);
  EXPECT_THROW(restorer.restored("a", Tensor::zeros(DType::Float32, {0, 3})), Error);
}

TEST(ChannelNotes, HostileTextIsRefusedByName) {
  const std::string deep(200000, '[');
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string(R"({"a":0})"), std::string(R"({"a":-3})"),
        std::string(R"({"a":1.5})"), std::string(R"({"a":99999999999999999999})"), deep}) {
    EXPECT_THROW(read_channel_notes(with_note("quench.padded_channels", text)), Error) << text;
  }
  for (const std::string& text :
       {std::string("{}"), std::string("[1]"), std::string(R"([{"values":["a"]}])"),
        std::string(R"([{"values":["a"],"factors":""}])"),
        std::string(R"([{"values":["a"],"factors":"AB"}])"),
        std::string(R"([{"values":["a"],"factors":"A*B"}])"),
        std::string(R"([{"values":[3],"factors":"gAA"}])"), deep}) {
    EXPECT_THROW(read_channel_notes(with_note("quench.equalized", text)), Error) << text;
  }
  try {
    ChannelRestorer(with_note("quench.equalized", "{}"), "m.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("m.onnx"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("quench.equalized"), std::string::npos);
  }
}

}  // namespace
}  // namespace quench::testing
