// SPDX-License-Identifier: Apache-2.0
// Files are recognised by what is in them; those of other tools get a helpful error.
#include "formats/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

TEST(Registry, NamesAreUniqueAndRowsComplete) {
  std::set<std::string_view> names;
  for (const FormatInfo& each : all_formats()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.summary.empty());
    EXPECT_TRUE(each.extension.starts_with('.'));
    EXPECT_TRUE(each.sniff != nullptr && each.read != nullptr);
    const bool told = each.summary.ends_with("read only") || !each.only_shown.empty();
    EXPECT_TRUE(each.stage != nullptr || told) << each.name;
    EXPECT_FALSE(each.sniff({}));
  }
  EXPECT_TRUE(names.contains("onnx"));
}

TEST(Registry, TheNameOfAFileDoesNotMatterForReading) {
  const Folder folder;
  write_bytes(folder / "weights.bin", small_model().SerializeAsString());
  EXPECT_EQ(load(folder / "weights.bin").graph.nodes.size(), 1U);
}

TEST(Registry, FilesOfOtherToolsAreNamed) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> files[] = {
      {"PK\x03\x04rest of a zip"s, "PyTorch"},
      {"\x1C\0\0\0TFL3\0\0"s, "TFLite"},
      {"\x0A\x80\x08 a program"s, "Paddle"},
      {"{\"program\": 1}"s, "JSON"},
      {"GGUF\x03\0\0\0"s, "GGUF"},
      {"version https://git-lfs.github.com/spec/v1\n"s, "LFS"},
      {"\xFF\xFE no idea"s, "known: tflite, ms, tf, mindir, onnx"},
  };
  for (const auto& [bytes, word] : files) {
    const std::string message = load_error(bytes);
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_NE(message.find("model.onnx: "), std::string::npos) << message;
  }
}

TEST(Registry, AFolderIsNoModel) {
  const Folder folder;
  EXPECT_THROW((void)load(folder / ""), Error);
}

}  // namespace
}  // namespace quench::testing
