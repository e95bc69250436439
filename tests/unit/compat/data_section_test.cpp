// SPDX-License-Identifier: Apache-2.0
// The [data_preprocess_param] section and the grammar of INI files.
#include "base/ini.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempFolder;

TEST(DataSection, ReadsEveryKey) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", R"([common_quant_param]
quant_type=FULL_QUANT
# data
[data_preprocess_param]
calibrate_path=data:/some/dir
calibrate_size=100
input_type=IMAGE
image_to_format=RGB
normalize_mean=[127.5, 1.0, -2]
normalize_std=[127.5,1,2]
resize_width=224
resize_height=256
resize_method=CUBIC
center_crop_width=200
center_crop_height = 100
)");
  const DataOptions options = read_data_section(path);
  EXPECT_EQ(options.path, "data:/some/dir");
  EXPECT_EQ(options.limit, 100);
  EXPECT_EQ(options.kind, DataKind::Image);
  EXPECT_EQ(options.image.color, ColorOrder::Rgb);
  EXPECT_EQ(options.image.mean, (std::vector<double>{127.5, 1, -2}));
  EXPECT_EQ(options.image.std, (std::vector<double>{127.5, 1, 2}));
  EXPECT_EQ(options.image.resize->width, 224);
  EXPECT_EQ(options.image.resize->height, 256);
  EXPECT_EQ(options.image.method, ResizeMethod::Cubic);
  EXPECT_EQ(options.image.center_crop->width, 200);
  EXPECT_EQ(options.image.center_crop->height, 100);
  EXPECT_EQ(options.image.normalize, NormalizeOrder::First);
}

TEST(DataSection, DefaultsAreThoseOfConverterLite) {
  const TempFolder folder;
  const auto path = folder.write("c.cfg", "[data_preprocess_param]\ninput_type=BIN\n");
  const DataOptions options = read_data_section(path);
  EXPECT_EQ(options.kind, DataKind::Bin);
  EXPECT_EQ(options.bin_layout, BinLayout::Nhwc);
  EXPECT_EQ(options.image.color, ColorOrder::Bgr);
  EXPECT_EQ(options.limit, 0);
  EXPECT_FALSE(options.image.resize);
}

TEST(DataSection, MistakesAreFoundWithFileAndLine) {
  const TempFolder folder;
  const auto what = [&](const std::string& line) {
    const auto path = folder.write("c.cfg", "[data_preprocess_param]\n\n" + line + "\n");
    const std::string error = error_of(ErrorKind::BadConfig, [&] { read_data_section(path); });
    expect_contains(error, {"c.cfg:3: "});
    return error;
  };
  expect_contains(what("calibrate_sise=10"), {"'calibrate_sise'", "'calibrate_size'?"});
  expect_contains(what("calibrate_size=0"), {"calibrate_size", "'0'"});
  expect_contains(what("calibrate_size=10x"), {"'10x'"});
  expect_contains(what("image_to_format=rgb"), {"RGB, GRAY, BGR", "'rgb'"});
  expect_contains(what("normalize_mean=1,2"), {"normalize_mean", "[1.0, 2.0]"});
  expect_contains(what("normalize_mean=[1,,2]"), {"normalize_mean"});
  expect_contains(what("resize_width=10"), {"resize_width", "resize_height"});
  expect_contains(what("resize_method=LINEAR"), {"resize_width"});
  expect_contains(what("input_type"), {"key=value"});
  expect_contains(what("input_type=a=b"), {"key=value"});
  expect_contains(what("input_type="), {"'input_type'", "no value"});
  const auto missing = folder.write("c.cfg", "[other]\na=b\n");
  expect_contains(error_of(ErrorKind::BadConfig, [&] { read_data_section(missing); }),
                  {"c.cfg", "[data_preprocess_param]"});
  expect_contains(error_of(ErrorKind::Io, [&] { read_data_section(folder.path("no.cfg")); }),
                  {"no.cfg"});
}

TEST(Ini, GrammarOfConverterLite) {
  IniFile file = IniFile::parse(
      "a = \"1\"\r\n# note\n[ s ]\nb=2\nb=3\n[t]\n[s]\nc=TRUE\nd=0.5\ne=yes\n", "f.ini");
  EXPECT_EQ(file.find("DEFAULT")->find("a")->value, "1");
  ASSERT_NE(file.find("s"), nullptr);
  EXPECT_EQ(file.find("s")->find("b")->value, "3");
  EXPECT_EQ(file.find("s")->find("b")->line, 5);
  EXPECT_EQ(file.to_bool(*file.find("s")->find("c")), true);
  EXPECT_EQ(file.to_number(*file.find("s")->find("d")), 0.5);
  EXPECT_EQ(file.find("s")->find("z"), nullptr);
  EXPECT_EQ(file.find("u"), nullptr);
  EXPECT_TRUE(file.find("t")->entries.empty());
  EXPECT_NO_THROW(file.check());
  EXPECT_EQ(file.to_bool(*file.find("s")->find("e")), std::nullopt);
  expect_contains(error_of(ErrorKind::BadConfig, [&] { file.check(); }), {"f.ini:10: ", "'yes'"});
  expect_contains(error_of(ErrorKind::BadConfig, [&] { IniFile::parse("[]\n", "g.ini").check(); }),
                  {"g.ini:1: "});
}

TEST(Ini, AllMistakesAreToldInTheOrderOfLines) {
  IniFile file = IniFile::parse("[s]\nb=x\nonly a word\na=9\n", "f.ini");
  EXPECT_FALSE(file.to_int(*file.find("s")->find("a"), 0, 5));
  EXPECT_FALSE(file.to_number(*file.find("s")->find("b")));
  EXPECT_EQ(error_of(ErrorKind::BadConfig, [&] { file.check(); }),
            "f.ini:2: b must be a number, got 'x'\n"
            "  f.ini:3: expected 'key=value' or '[section]', got 'only a word'\n"
            "  f.ini:4: a must be a whole number from 0 to 5, got '9'");
}

}  // namespace
}  // namespace quench
