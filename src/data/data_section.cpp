// SPDX-License-Identifier: Apache-2.0
// Data options from the [data_preprocess_param] section that converter_lite reads.
#include "data/data_section.h"

#include "base/format.h"

namespace quench {
namespace data {
namespace {

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {
      "calibrate_path", "calibrate_size",    "input_type",         "image_to_format",
      "normalize_mean", "normalize_std",     "resize_width",       "resize_height",
      "resize_method",  "center_crop_width", "center_crop_height",
  };
  return keys;
}

/// Reads the keys of the section.
class SectionReader {
 public:
  SectionReader(IniFile& file, const IniSection& section) : file_(file), section_(section) {}

  // An enum whose values stand in the order of `names`.
  template <typename Enum>
  void choice(const char* key, Enum& value, const std::vector<std::string>& names,
              const std::vector<Enum>& values) const {
    const IniEntry* entry = section_.find(key);
    if (entry == nullptr) return;
    if (const auto index = file_.to_choice(*entry, names)) value = values[*index];
  }
  void numbers(const char* key, std::vector<double>& values) const {
    const IniEntry* entry = section_.find(key);
    if (entry != nullptr) values = file_.to_numbers(*entry).value_or(values);
  }
  void count(const char* key, std::int64_t& value) const {
    const IniEntry* entry = section_.find(key);
    if (entry != nullptr) value = file_.to_int(*entry, 1, 65535).value_or(value);
  }
  std::optional<ImageSize> size(const std::string& stem) const {
    const IniEntry* width = section_.find(stem + "_width");
    const IniEntry* height = section_.find(stem + "_height");
    if (width == nullptr && height == nullptr) return std::nullopt;
    if (width == nullptr || height == nullptr) {
      const IniEntry* given = width != nullptr ? width : height;
      file_.complain(given->line, format("{} alone is not enough; give {}_width and {}_height",
                                         given->key, stem, stem));
      return ImageSize{};
    }
    return ImageSize{side(*width), side(*height)};
  }

 private:
  int side(const IniEntry& entry) const {
    return static_cast<int>(file_.to_int(entry, 1, 65535).value_or(1));
  }

  IniFile& file_;
  const IniSection& section_;
};

}  // namespace

DataOptions read_section(IniFile& file, const IniSection& section) {
  file.expect_keys(section, known_keys());
  DataOptions options;
  // converter_lite leaves OpenCV's order unless told otherwise, and normalises before it resizes;
  // the models that it calibrates are NHWC, and so are their raw tensors.
  options.image.color = ColorOrder::Bgr;
  options.image.normalize = NormalizeOrder::First;
  if (const IniEntry* path = section.find("calibrate_path")) options.path = path->value;
  const SectionReader reader(file, section);
  reader.count("calibrate_size", options.limit);
  reader.choice("input_type", options.kind, {"IMAGE", "BIN"}, {DataKind::Image, DataKind::Bin});
  if (options.kind == DataKind::Bin) options.bin_layout = BinLayout::Nhwc;
  reader.choice("image_to_format", options.image.color, {"RGB", "GRAY", "BGR"},
                {ColorOrder::Rgb, ColorOrder::Gray, ColorOrder::Bgr});
  reader.choice("resize_method", options.image.method, {"LINEAR", "NEAREST", "CUBIC"},
                {ResizeMethod::Linear, ResizeMethod::Nearest, ResizeMethod::Cubic});
  reader.numbers("normalize_mean", options.image.mean);
  reader.numbers("normalize_std", options.image.std);
  options.image.resize = reader.size("resize");
  options.image.center_crop = reader.size("center_crop");
  if (const IniEntry* method = section.find("resize_method"); method && !options.image.resize) {
    file.complain(method->line, "resize_method needs resize_width and resize_height");
  }
  return options;
}

}  // namespace data

DataOptions read_data_section(const std::string& ini_path) {
  IniFile file = IniFile::read(ini_path);
  const IniSection* section = file.find(data::kDataSection);
  if (section == nullptr) {
    file.check();
    fail(ErrorKind::BadConfig, "{}: there is no section [{}]", ini_path, data::kDataSection);
  }
  DataOptions options = data::read_section(file, *section);
  file.check();
  return options;
}

}  // namespace quench
