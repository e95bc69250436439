// SPDX-License-Identifier: Apache-2.0
// Settings as JSON: what is written is read again, and every mistake names its key.
#include "options/settings.h"

#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempFolder;

QuantizeOptions unusual() {
  QuantizeOptions options;
  options.type = QuantType::Weight;
  options.config.target = "generic";
  options.config.global.activation_observer = "KL";
  options.config.by_layer["a.b"].weight_bits = 4;
  options.config.by_name = {{"conv*", {.per_channel = false}}, {"*", {.skip = true}}};
  options.config.by_type["Gemm"].activation_bits = 16;
  options.config.skip_quant_node = {"x", "y"};
  options.config.hist_percent = 0.1 + 0.2;  // not a short number
  options.weight.bits = 3;
  options.weight.dequant_strategy = DequantStrategy::OnTheFly;
  options.dynamic.quant_strategy = DynamicQuantOptions::Strategy::ACWL;
  options.data.path = "x:here";
  options.data.kind = DataKind::Bin;
  options.data.image.color = ColorOrder::Bgr;
  options.data.image.resize = ImageSize{.width = 7, .height = 9};
  options.data.image.mean = {1.5, 2.5};
  options.statistics = {"a.stats", "b.stats"};
  options.batch = 5;
  options.bias_correction = false;
  options.qoperator = true;
  options.input_shapes["x"] = {1, 3, 224, 224};
  return options;
}

TEST(Settings, AreReadAsTheyWereWritten) {
  const TempFolder folder;
  const std::string text = settings_json(unusual());
  EXPECT_NE(text, settings_json({}));
  const QuantizeOptions read = read_settings(folder.write("s.json", text));
  EXPECT_EQ(settings_json(read), text);
  EXPECT_EQ(read.config.hist_percent, unusual().config.hist_percent);
  EXPECT_EQ(read.config.by_name[0].first, "conv*");  // their order decides
  EXPECT_EQ(read.data.image.resize->height, 9);
  EXPECT_EQ(read.input_shapes.at("x"), (Shape{1, 3, 224, 224}));
}

TEST(Settings, AReportHoldsThem) {
  const TempFolder folder;
  const std::string report = R"({"seconds": 1, "settings": )" + settings_json(unusual()) + "}";
  EXPECT_EQ(settings_json(read_settings(folder.write("r.json", report))), settings_json(unusual()));
}

TEST(Settings, WhatIsLeftOutKeepsItsDefault) {
  const TempFolder folder;
  QuantizeOptions expected;
  expected.batch = 3;
  const QuantizeOptions read = read_settings(folder.write("s.json", R"({"batch": 3})"));
  EXPECT_EQ(settings_json(read), settings_json(expected));
}

TEST(Settings, MistakesNameTheKey) {
  const TempFolder folder;
  const auto what = [&](const std::string& text) {
    const auto path = folder.write("s.json", text);
    return error_of(ErrorKind::BadConfig, [&] { read_settings(path); });
  };
  expect_contains(what(R"({"config": {"taget": "x"}})"), {"config", "'taget'", "'target'?"});
  expect_contains(what(R"({"config": {"global": {"weight_bits": 8.5}}})"),
                  {"config.global.weight_bits", "whole number", "8.5"});
  expect_contains(what(R"({"data": {"image": {"mean": [1, "2"]}}})"),
                  {"data.image.mean", "number"});
  expect_contains(what(R"({"batch": 1e300})"), {"batch"});
  expect_contains(what(R"({"batch": 18446744073709551615})"), {"batch"});
  expect_contains(what(R"({"config": {"by_name": [["a"]]}})"), {"by_name"});
  expect_contains(what(R"({"weight": {"dequant_strategy": "later"}})"), {"on_the_fly"});
  expect_contains(what("{"), {"not JSON"});
}

TEST(Settings, OriginReplacesWhatWasNoted) {
  Model model;
  model.metadata = {{"author", "me"}, {"quench.settings", "old"}};
  note_origin(model, unusual(), "0123");
  ASSERT_EQ(model.metadata.size(), 4U);
  EXPECT_EQ(model.metadata[0].first, "author");
  EXPECT_EQ(model.metadata[3].second, settings_json(unusual()));
  QuantizeOptions bare;
  bare.store_settings = false;
  note_origin(model, bare, "0123");
  EXPECT_EQ(model.metadata.size(), 1U);
}

}  // namespace
}  // namespace quench
