// SPDX-License-Identifier: Apache-2.0
// The table of options: it is whole, its names are one each, and text sets what it says.
#include <set>

#include "options/row.h"
#include "quench/error.h"
#include "quench/option_table.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempFolder;

/// Stands for a value of any type, to count the members of a struct.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): that is what it is for
};

template <typename T, typename... Given>
constexpr std::size_t members() {
  if constexpr (requires { T{Given{}..., Anything{}}; }) {
    return members<T, Given..., Anything>();
  } else {
    return sizeof...(Given);
  }
}

/// The members under a place that the table knows, by their own names.
std::size_t known(const std::string& place) {
  std::set<std::string> names;
  for (const Option& option : all_options()) {
    if (option.setting.empty() || !option.setting.starts_with(place)) continue;
    const std::string_view rest = option.setting.substr(place.size());
    names.emplace(rest.substr(0, rest.find('.')));
  }
  return names.size();
}

// A member without a row would be lost when settings are stored.
TEST(OptionTable, HasARowForEveryMember) {
  EXPECT_EQ(known("weight."), members<WeightQuantOptions>());
  EXPECT_EQ(known("dynamic."), members<DynamicQuantOptions>());
  EXPECT_EQ(known("data.image."), members<ImageOptions>());
  // Not stored: labels and the characters of texts, and samples that code gives, in both forms.
  EXPECT_EQ(known("data.") + 4, members<DataOptions>());
  EXPECT_EQ(known("config.global."), members<QuantRule>());
  EXPECT_EQ(known("config.") + 1, members<QuantConfig>());  // custom observers are code
  // Not stored: where tables and the page go, how many tables, the command, whether settings are
  // stored, two lists of notes.
  EXPECT_EQ(known("") + 7, members<QuantizeOptions>());
}

TEST(OptionTable, NamesAreOneEachAndSaidInOneWay) {
  std::set<std::string> names;
  std::set<std::string> places;
  for (const Option& option : all_options()) {
    EXPECT_TRUE(names.emplace(option.name).second) << option.name;
    if (!option.setting.empty()) {
      EXPECT_TRUE(places.emplace(option.setting).second) << option.name;
    }
    if (option.jobs == 0) continue;
    EXPECT_EQ(option.name.find('_'), std::string_view::npos) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
  }
}

TEST(OptionTable, EveryDefaultIsTextThatSetsIt) {
  const QuantizeOptions defaults;
  for (const Option& option : all_options()) {
    const std::string text = option_text(defaults, option.name);
    // "0" stands for none where the option takes more, and empty text for nothing at all.
    if (text.empty() || option.alias || (text == "0" && option.least > 0)) continue;
    QuantizeOptions options;
    set_option(options, option.name, {text});
    EXPECT_EQ(option_text(options, option.name), text) << option.name;
  }
}

TEST(OptionTable, SetsFromText) {
  QuantizeOptions options;
  set_option(options, "type", {"weight"});
  set_option(options, "skip_node", {"a,b", R"(conv\,1)"});
  set_option(options, "stats", {"a,b.stats"});
  set_option(options, "per-layer", {});
  set_option(options, "bias-correction", {"none"});
  set_option(options, "resize-fit", {"7,9"});
  set_option(options, "resize-shorter", {"8"});
  set_option(options, "rule", {"type:Conv:bits=4"});
  EXPECT_EQ(options.type, QuantType::Weight);
  EXPECT_EQ(options.config.skip_quant_node, (std::vector<std::string>{"a", "b", "conv,1"}));
  EXPECT_EQ(option_text(options, "skip-node"), R"(a,b,conv\,1)");
  EXPECT_EQ(options.statistics, std::vector<std::string>{"a,b.stats"});  // a file may be called so
  EXPECT_EQ(options.config.global.per_channel, false);
  EXPECT_FALSE(options.bias_correction);
  EXPECT_FALSE(options.weight.bias_correction);
  EXPECT_FALSE(options.data.image.resize_fit);  // one way to resize replaces the others
  EXPECT_EQ(options.data.image.resize_shorter, 8);
  EXPECT_EQ(options.config.by_type.at("Conv").weight_bits, 4);
}

TEST(OptionTable, MistakesNameTheOptionAndWhatItTakes) {
  const auto what = [](const char* name, const std::string& word) {
    return error_of(ErrorKind::Usage, [&] {
      QuantizeOptions options;
      set_option(options, name, {word});
    });
  };
  expect_contains(what("bits", "17"), {"--bits", "from 0 to 16", "'17'"});
  expect_contains(what("bits", "4.5"), {"whole number"});
  expect_contains(what("init-scale", "1"), {"between 0 and 1"});
  expect_contains(what("hist-percent", "nan"), {"from 0.5 to 1"});
  expect_contains(what("type", "ful"), {"full, weight, dynamic"});
  expect_contains(what("shape", "x"), {"NAME=VALUE"});
  expect_contains(what("bitss", "4"), {"did you mean 'bits'?"});
}

TEST(OptionTable, WhatChangesNothingIsRefused) {
  QuantizeOptions options;
  refuse_idle_options({"target", "skip-node"}, options);
  expect_contains(error_of(ErrorKind::Usage, [&] { refuse_idle_options({"bits"}, options); }),
                  {"--bits", "--type weight", "this is --type full"});
}

TEST(OptionTable, NamesAreKeysOfSettingsToo) {
  const TempFolder folder;
  const QuantizeOptions options = read_settings(folder.write("s.json", R"({"type": "weight",
    "bits": 4, "skip_node": ["a,b"], "data": "here", "bias_correction": "fast",
    "rule": ["type:Conv:bits=4"]})"));
  EXPECT_EQ(options.weight.bits, 4);
  EXPECT_EQ(options.config.skip_quant_node, std::vector<std::string>{"a,b"});
  EXPECT_EQ(options.data.path, "here");
  EXPECT_EQ(options.correction, BiasCorrection::Fast);
  EXPECT_EQ(options.config.by_type.at("Conv").activation_bits, 4);
}

}  // namespace
}  // namespace quench
