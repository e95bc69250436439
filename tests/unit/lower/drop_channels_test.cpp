// SPDX-License-Identifier: Apache-2.0
// Channels that no weight reads: sessions leave them out, and nobody sees a difference.
#include <algorithm>

#include "unit/lower/mobile.h"

namespace quench::testing {
namespace {

Model dropped(Model model, const passes::PassOptions& options = {}) {
  infer_types(model);
  exec::rewrites::run(model, std::vector<std::string_view>{"drop_channels"}, options,
                      passes::Checks::Verify);
  infer_types(model);
  return model;
}

/// Mobile with thirteen channels, of which the layers behind "weighed" and "mean" read those given.
Model reading(const std::vector<int>& channels_read) {
  Mobile mobile(13, 13);
  Model model = mobile.finish().lowered();
  for (const char* name : {"out_w_quantized", "e_w_quantized"}) {
    Value& value = model.graph[model.graph.find(name)];
    Tensor weights = Tensor::zeros(DType::Int8, value.constant->shape());
    const auto from = value.constant->data<std::int8_t>();
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool read =
          std::ranges::find(channels_read, static_cast<int>(i % 13)) != channels_read.end();
      if (read) weights.mutable_data<std::int8_t>()[i] = from[i];
    }
    value.constant = std::move(weights);
  }
  return model;
}

std::vector<float> simulated(const Model& model, const TensorMap& inputs) {
  SessionOptions options;
  options.integer = false;
  return to_float(Session(model, options, {}).run(inputs).at("out"));
}

TEST(DropChannels, UndoesPadding) {
  const Model plain = Mobile().finish().lowered();
  Model wide = plain;
  pad_channels(wide, 16);
  const Model narrow = dropped(wide);
  for (const char* value : {"a", "m", "d", "mean", "e", "weighed"}) {
    EXPECT_EQ(channels(narrow, value), 4) << value << ": three, and one to make a whole group";
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(simulated(plain, batch(i)), run(wide, batch(i))) << i;
}

TEST(DropChannels, ResultsStayWhateverIsLeft) {
  for (const std::vector<int>& read :
       {std::vector<int>{}, {0}, {12}, {3, 4, 5, 11}, {0, 2, 4, 6, 8, 10, 12}}) {
    const Model model = reading(read);
    const Model narrow = dropped(model);
    const auto expected = static_cast<std::int64_t>(std::max<std::size_t>(read.size(), 1) + 3) / 4;
    EXPECT_EQ(channels(narrow, "d"), 4 * expected);
    EXPECT_EQ(channels(narrow, "out"), 2);
    for (int i = 0; i < 4; ++i) {
      const std::vector<float> want = simulated(model, batch(i));
      EXPECT_EQ(simulated(narrow, batch(i)), want) << read.size();
      EXPECT_EQ(run(model, batch(i)), want) << read.size();
    }
  }
}

TEST(DropChannels, LeavesWhatIsReadOrNearlyAllOfIt) {
  const Model plain = Mobile().finish().lowered();
  EXPECT_EQ(dump(dropped(plain)), dump(plain));
  const Model nearly = reading({0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(channels(dropped(nearly), "d"), 12);
  const Model more = reading({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(channels(dropped(more), "d"), 13);
}

TEST(DropChannels, TapsAreWhole) {
  const Model model = reading({1, 2});
  passes::PassOptions options;
  options.keep.insert("m");
  EXPECT_EQ(channels(dropped(model, options), "m"), 13);
  SessionOptions tapped;
  tapped.taps = {"m"};
  const std::vector<std::string> wanted = {"m", "out"};
  const TensorMap seen = Session(model, tapped, {}).run(batch(), wanted);
  EXPECT_EQ(seen.at("m").shape(), (Shape{1, 13, 4, 4}));
  EXPECT_EQ(to_float(seen.at("out")), run(model, batch()));
}

TEST(DropChannels, LeavesFloats) {
  // Zero times an infinity is no number, and that is what the file says.
  Model model = reading({1});
  Graph& graph = model.graph;
  for (Node& node : graph.nodes) {
    if (node.name == "conv_out") node.inputs[0] = graph.find("weighed");
  }
  EXPECT_EQ(channels(dropped(model), "weighed"), 13);
}

}  // namespace
}  // namespace quench::testing
