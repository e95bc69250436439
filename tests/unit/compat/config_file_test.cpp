// SPDX-License-Identifier: Apache-2.0
// converter_lite's INI files: every key, and every mistake with its line.
#include "quench/converter_lite.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempFolder;

TEST(ConfigFile, ReadsEveryKeyOfFullQuantisation) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([common_quant_param]
quant_type=FULL_QUANT
bit_num=8
min_quant_weight_size=100
min_quant_weight_channel=4
skip_quant_node=conv1, conv2
enable_encode=false
[full_quant_param]
activation_quant_method=KL
bias_correction=FALSE
per_channel=false
target_device=DSP
[data_preprocess_param]
calibrate_path=x:images
calibrate_size=7
input_type=BIN
)");
  const QuantizeOptions options = read_config(path);
  EXPECT_EQ(options.type, QuantType::Full);
  EXPECT_EQ(options.min_quant_weight_size, 100);
  EXPECT_EQ(options.min_quant_weight_channel, 4);
  EXPECT_EQ(options.config.skip_quant_node, (std::vector<std::string>{"conv1", "conv2"}));
  EXPECT_EQ(options.config.global.activation_observer, "KL");
  EXPECT_EQ(options.config.global.per_channel, false);
  EXPECT_FALSE(options.bias_correction);
  EXPECT_EQ(options.config.target, "dsp");
  EXPECT_EQ(options.data.path, "x:images");
  EXPECT_EQ(options.data.limit, 7);
  EXPECT_EQ(options.data.kind, DataKind::Bin);
  EXPECT_EQ(options.data.bin_layout, BinLayout::Nhwc);
  ASSERT_EQ(options.notes.size(), 2U);
  expect_contains(options.notes[0], {"c.cfg:16: ", "NHWC", "bin_format"});
  expect_contains(options.notes[1], {"c.cfg:7: ", "enable_encode"});
}

TEST(ConfigFile, MethodLeftOutIsConverterLites) {
  const TempFolder folder;
  const auto observer = [&](const std::string& text, const QuantizeOptions& base = {}) {
    return read_config(folder.write("c.cfg", text), base).config.global.activation_observer;
  };
  const std::string full = "[common_quant_param]\nquant_type=FULL_QUANT\n";
  EXPECT_EQ(observer(full), "min_max");
  EXPECT_EQ(observer("[full_quant_param]\nper_channel=true\n"), "min_max");
  EXPECT_EQ(observer("[common_quant_param]\nquant_type=WEIGHT_QUANT\n"), std::nullopt);
  QuantizeOptions base;
  base.config.global.activation_observer = "KL";
  EXPECT_EQ(observer(full, base), "KL");
  // Settings of ours that the file goes with say it themselves.
  folder.write("s.json", "{}");
  EXPECT_EQ(observer("[quench_param]\nsettings_file=s.json\n" + full), std::nullopt);
}

TEST(ConfigFile, LayoutOfRawFilesCanBeSaid) {
  const TempFolder folder;
  const std::string data = "[data_preprocess_param]\ninput_type=BIN\n";
  const auto with = [&](const std::string& own, BinLayout said = BinLayout::Unsaid) {
    QuantizeOptions base;
    base.data.bin_layout = said;
    return read_config(folder.write("c.cfg", own + data), base);
  };
  EXPECT_EQ(with("").data.bin_layout, BinLayout::Nhwc);
  for (const QuantizeOptions& said :
       {with("[quench_param]\nbin_format=NCHW\n"), with("", BinLayout::Input)}) {
    EXPECT_EQ(said.data.bin_layout, BinLayout::Input);
    EXPECT_TRUE(said.notes.empty());
  }
}

TEST(ConfigFile, WhatIsLeftOutKeepsTheBase) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", "[full_quant_param]\nper_channel=true\n");
  QuantizeOptions base;
  base.type = QuantType::None;
  base.config.target = "ascend";
  base.data.path = "here";
  base.bias_correction = false;
  const QuantizeOptions options = read_config(path, base);
  EXPECT_EQ(options.config.target, "ascend");
  EXPECT_EQ(options.data.path, "here");
  EXPECT_FALSE(options.bias_correction);
  EXPECT_EQ(options.type, QuantType::None);
  EXPECT_EQ(options.config.global.per_channel, true);
}

TEST(ConfigFile, MethodsAndDevices) {
  const TempFolder folder;
  const auto with = [&](const std::string& line) {
    return read_config(folder.write("c.cfg", "[full_quant_param]\n" + line + "\n"));
  };
  const auto observer = [&](const std::string& method) {
    return with("activation_quant_method=" + method).config.global.activation_observer.value();
  };
  EXPECT_EQ(observer("MAX_MIN"), "min_max");
  EXPECT_EQ(observer("REMOVAL_OUTLIER"), "removal_outlier");
  EXPECT_EQ(observer("RemovalOutlier"), "removal_outlier");
  EXPECT_EQ(with("target_device=NVGPU").config.target, "tensorrt");
  EXPECT_EQ(with("target_device=ASCEND").config.target, "ascend");
  const QuantizeOptions kirin = with("target_device=KIRIN");
  EXPECT_EQ(kirin.config.target, "generic");
  ASSERT_EQ(kirin.notes.size(), 1U);
  expect_contains(kirin.notes[0], {"c.cfg:2: ", "target_device"});
}

TEST(ConfigFile, WhatHasNoEffectIsNoted) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([ascend_context]
input_format=NCHW
[common_quant_param]
quant_type=WEIGHT_QUANT
workspace=somewhere
enable_encode=true
[weight_quant_param]
dequant_strategy=ON_THE_FLY
max_segments=2
bias_correction=true
[full_quant_param]
per_channel=false
)");
  const QuantizeOptions options = read_config(path);
  ASSERT_EQ(options.notes.size(), 6U);
  expect_contains(options.notes[0], {"c.cfg:1: ", "[ascend_context]"});
  expect_contains(options.notes[1], {"c.cfg:5: ", "workspace"});
  expect_contains(options.notes[2], {"c.cfg:8: ", "dequant_strategy"});
  expect_contains(options.notes[3], {"c.cfg:9: ", "max_segments"});
  expect_contains(options.notes[4], {"c.cfg:10: ", "bias_correction"});
  expect_contains(options.notes[5], {"c.cfg:11: ", "[full_quant_param]", "FULL_QUANT"});
  ASSERT_EQ(options.notes_unless_packed.size(), 1U);
  expect_contains(options.notes_unless_packed[0], {"c.cfg:6: ", "enable_encode", ".qnch"});
}

TEST(ConfigFile, NothingIsNotedOfWhatCounts) {
  const TempFolder folder;
  const auto notes = [&](const std::string& text) {
    return read_config(folder.write("c.cfg", "[common_quant_param]\nquant_type=" + text)).notes;
  };
  EXPECT_TRUE(notes("WEIGHT_QUANT\nbit_num=4\n[weight_quant_param]\nbias_correction=true\n"
                    "max_segments=1\n")
                  .empty());
  EXPECT_TRUE(notes("FULL_QUANT\n[full_quant_param]\nper_channel=true\n").empty());
  const auto dsp = notes("FULL_QUANT\n[full_quant_param]\nper_channel=true\ntarget_device=DSP\n");
  ASSERT_EQ(dsp.size(), 1U);
  expect_contains(dsp[0], {"c.cfg:4: ", "per_channel"});
}

TEST(ConfigFile, NotesSpeakOfWhatHoldsInTheEnd) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", "[full_quant_param]\nper_channel=true\n");
  const auto with = [&](const char* name, const char* word) {
    return read_config(path, {}, [&](QuantizeOptions& read) { set_option(read, name, {word}); })
        .notes;
  };
  EXPECT_TRUE(with("target", "generic").empty());
  ASSERT_EQ(with("target", "dsp").size(), 1U);
  expect_contains(with("target", "dsp")[0], {"c.cfg:2: ", "per_channel"});
  expect_contains(with("type", "weight")[0], {"c.cfg:1: ", "[full_quant_param]"});
}

// Every key either sets an option or is said to change nothing.
TEST(ConfigFile, NoKeyIsPassedOverInSilence) {
  ASSERT_FALSE(converter_keys().empty());
  for (const ConverterKey& key : converter_keys()) {
    const bool flag = key.option != nullptr && key.option->jobs != 0;
    const bool told = key.option != nullptr && !key.option->help.empty();
    EXPECT_TRUE(flag || told || !key.idle.empty()) << key.section << "." << key.key;
  }
}

TEST(ConfigFile, MessagesSpeakOfKeys) {
  EXPECT_EQ(in_converter_words("give --data, or --activation-observer min_max"),
            "give calibrate_path, or activation_quant_method=MAX_MIN");
  EXPECT_EQ(in_converter_words("--gptq, --per-layer, --resize and --bins"),
            "quant_strategy=GPTQ, per_channel=false, resize_width and resize_height and --bins of "
            "quench quantize");
  EXPECT_EQ(in_converter_words("--shape x=1,3 (see `quench list --json`)"),
            "--inputShape=x:1,3 (see `quench list --json`)");
}

TEST(ConfigFile, WhatWouldChangeTheModelIsRefused) {
  const TempFolder folder;
  for (const char* line : {"dynamic_batch_size=1,2,4", "dynamic_dims=[1~4]", "input_format=NHWC",
                           "input_shape=x:[-1,3,8,8]", "output_type=FP16"}) {
    const auto path = folder.write("c.cfg", std::string("[ascend_context]\n") + line + "\n");
    expect_contains(error_of(ErrorKind::Unsupported, [&] { read_config(path); }),
                    {"c.cfg:2: ", line, "not supported"});
  }
}

TEST(ConfigFile, AllMistakesAreToldAtOnce) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([common_quant_param]
quant_type=FULL_QUAN
bit_num=20
[ful_quant_param]
[data_preprocess_param]
calibrate_sise=3
resize_width=8
[ascend_context]
dynamic_dims=[1],[2]
)");
  const std::string error = error_of(ErrorKind::BadConfig, [&] { read_config(path); });
  expect_contains(error, {"c.cfg:2: quant_type", "c.cfg:3: bit_num", "c.cfg:4: there is no",
                          "c.cfg:6: ", "c.cfg:7: resize_width", "c.cfg:9: dynamic_dims"});
}

TEST(ConfigFile, ReadsEveryKeyOfWeightQuantisation) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([common_quant_param]
quant_type=WEIGHT_QUANT
bit_num=0
debug_info_save_path=somewhere
[weight_quant_param]
dequant_strategy=ON_THE_FLY
per_channel=False
bias_correction=false
quant_strategy=GPTQ
max_segments=4
[mixed_bit_weight_quant_param]
init_scale=0.1
auto_tune=true
max_iterations=50
)");
  const QuantizeOptions options = read_config(path);
  EXPECT_EQ(options.type, QuantType::Weight);
  EXPECT_EQ(options.debug_info_save_path, "somewhere");
  EXPECT_EQ(options.min_quant_weight_channel, 16);  // converter_lite's default, where it counts
  const WeightQuantOptions& weight = options.weight;
  EXPECT_EQ(weight.bits, 0);
  EXPECT_EQ(weight.dequant_strategy, DequantStrategy::OnTheFly);
  EXPECT_FALSE(weight.per_channel);
  EXPECT_FALSE(weight.bias_correction);
  EXPECT_TRUE(weight.gptq);
  EXPECT_EQ(weight.max_segments, 4);
  EXPECT_DOUBLE_EQ(weight.init_scale, 0.1);
  EXPECT_TRUE(weight.auto_tune);
  EXPECT_EQ(weight.max_iterations, 50);
}

TEST(ConfigFile, ReadsDynamicQuantisation) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([common_quant_param]
quant_type=DYNAMIC_QUANT
bit_num=8
[dynamic_quant_param]
quant_strategy=ACWL
)");
  const QuantizeOptions options = read_config(path);
  EXPECT_EQ(options.type, QuantType::Dynamic);
  EXPECT_EQ(options.dynamic.quant_strategy, DynamicQuantOptions::Strategy::ACWL);
}

TEST(ConfigFile, MistakesAreFoundWithFileAndLine) {
  const TempFolder folder;
  const auto what = [&](const std::string& section, const std::string& line,
                        ErrorKind kind = ErrorKind::BadConfig) {
    const auto path = folder.write("c.cfg", "[" + section + "]\n\n" + line + "\n");
    const std::string error = error_of(kind, [&] { read_config(path); });
    expect_contains(error, {"c.cfg:3: "});
    return error;
  };
  const std::string common = "common_quant_param";
  const std::string full = "full_quant_param";
  expect_contains(what(common, "quant_typ=FULL_QUANT"), {"'quant_typ'", "'quant_type'?"});
  expect_contains(what(common, "quant_type=FULL_QUAN"), {"FULL_QUANT", "'FULL_QUAN'"});
  expect_contains(what(common, "min_quant_weight_size=65536"), {"65535"});
  expect_contains(what(common, "min_quant_weight_channel=-1"), {"'-1'"});
  expect_contains(what(common, "bit_num=17"), {"16"});
  expect_contains(what(common, "enable_encode=yes"), {"true or false"});
  expect_contains(what(full, "activation_quant_method=kl"), {"MAX_MIN, KL"});
  expect_contains(what(full, "bias_correction=1"), {"true or false"});
  expect_contains(what(full, "target_device=CPU"), {"NVGPU, DSP, ASCEND"});
  expect_contains(what(full, "smooth_alpha=much"), {"smooth_alpha"});
  expect_contains(what("data_preprocess_param", "calibrate_sise=1"), {"'calibrate_size'?"});
  expect_contains(what("ascend_context", "input_fromat=NCHW"), {"'input_format'?"});
  expect_contains(what("dynamic_quant_param", "strategy=ALWC"), {"'strategy'"});
  const std::string weight = "weight_quant_param";
  const std::string mixed = "mixed_bit_weight_quant_param";
  expect_contains(what(weight, "dequant_strategy=AT_LOAD"), {"ON_THE_FLY"});
  expect_contains(what(weight, "max_segments=0"), {"max_segments"});
  expect_contains(what(mixed, "init_scale=1"), {"between 0 and 1"});
  expect_contains(what(mixed, "max_iterations=39"), {"40"});
  expect_contains(what("dynamic_quant_param", "quant_strategy=ALWL"), {"ALWC, ACWL"});
  expect_contains(what("transform_quant_param", "export_precision_mode=FP16"), {"FLOAT32"});
}

TEST(ConfigFile, OddBitsAreAlwaysEncoded) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg",
                                 "[common_quant_param]\nquant_type=WEIGHT_QUANT\nbit_num=5\n"
                                 "enable_encode=false\n");
  expect_contains(error_of(ErrorKind::BadConfig, [&] { read_config(path); }),
                  {"c.cfg:4: ", "8 or 16"});
}

TEST(ConfigFile, FullQuantisationHasEightBits) {
  const TempFolder folder;
  const auto path =
      folder.write("c.cfg", "[common_quant_param]\nquant_type=FULL_QUANT\nbit_num=4\n");
  expect_contains(error_of(ErrorKind::BadConfig, [&] { read_config(path); }),
                  {"c.cfg:3: ", "8", "got 4"});
}

TEST(ConfigFile, SectionsMustBeKnown) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", "\n[ful_quant_param]\nper_channel=true\n");
  expect_contains(error_of(ErrorKind::BadConfig, [&] { read_config(path); }),
                  {"c.cfg:2: ", "[ful_quant_param]", "'full_quant_param'?"});
  const auto loose = folder.write("d.cfg", "per_channel=true\n");
  expect_contains(error_of(ErrorKind::BadConfig, [&] { read_config(loose); }), {"d.cfg:1: "});
}

}  // namespace
}  // namespace quench
