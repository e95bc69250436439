// SPDX-License-Identifier: Apache-2.0
// Quantisation settings from converter_lite's INI files.
#include <algorithm>
#include <filesystem>

#include "compat/converter_lite/config_keys.h"
#include "compat/converter_lite/config_notes.h"
#include "compat/converter_lite/config_words.h"
#include "options/settings.h"
#include "options/values.h"
#include "quench/converter_lite.h"

namespace quench {
namespace compat {
namespace {

using options::Words;

/// converter_lite's own: convolutions with no more channels keep their weights in float.
constexpr std::int64_t kMinWeightChannel = 16;
/// Its whole numbers end here.
constexpr double kMostWhole = 65535;

/// Names between commas; blanks around a name are no part of it.
std::string without_blanks(std::string_view text) {
  Words names = split_names(text);
  for (std::string& name : names) {
    const std::size_t first = std::min(name.find_first_not_of(" \t"), name.size());
    name = name.substr(first, name.find_last_not_of(" \t") + 1 - first);
  }
  std::erase(names, "");
  return options::Value<Words>::print(names);
}

/// Lays the file over the options.
class ConfigReader {
 public:
  ConfigReader(IniFile& file, QuantizeOptions& options) : file_(file), options_(options) {}

  void read(const std::function<void(QuantizeOptions&)>& override) {
    for (const IniSection& section : file_.sections()) check_section(file_, section);
    if (const IniSection* own = file_.find("quench_param")) {
      if (const IniEntry* entry = own->find("settings_file")) read_settings_of(*entry);
      if (const IniEntry* entry = own->find("settings")) parse_settings_of(*entry);
    }
    for (const Option& option : all_options()) {
      if (!option.ini.starts_with(kDataSection)) read_option(option);
    }
    if (const IniSection* common = file_.find("common_quant_param")) finish_common(*common);
    if (const IniSection* weight = file_.find("weight_quant_param")) {
      const IniEntry* strategy = weight->find("quant_strategy");
      if (strategy != nullptr && strategy->value == "MAX_MIN") options_.weight.observer = "min_max";
    }
    if (const IniSection* data = file_.find(kDataSection)) read_samples(*data);
    set_default_method();
    if (override) override(options_);
    note_what_has_no_effect(file_, options_);
  }

  /// The section that says which samples there are replaces what is known of them.
  void read_data(const IniSection& section) {
    options_.data = {};
    // converter_lite leaves OpenCV's order unless told otherwise, and normalises before it resizes;
    // the models that it calibrates are NHWC, and so are their raw tensors.
    options_.data.image.color = ColorOrder::Bgr;
    options_.data.image.normalize = NormalizeOrder::First;
    for (const Option& option : all_options()) {
      if (option.ini.starts_with(kDataSection)) read_option(option);
    }
    if (options_.data.kind == DataKind::Bin) options_.data.bin_layout = BinLayout::Nhwc;
    const IniEntry* method = section.find("resize_method");
    if (method != nullptr && section.find("resize_width") == nullptr &&
        section.find("resize_height") == nullptr) {
      file_.complain(method->line, "resize_method needs resize_width and resize_height");
    }
  }

 private:
  /// Sets an option where the file has its key, rightly.
  void read_option(const Option& option) {
    const IniPlace place = ini_place(option);
    const IniSection* section = file_.find(place.section);
    if (option.alias || section == nullptr) return;
    if (place.keys.size() > 1) return read_size(option, *section, place);
    const IniEntry* entry = section->find(place.keys.front());
    if (entry == nullptr) return;
    const std::optional<std::string> word = word_of(option, *entry);
    if (!word) return;
    try {
      set_option(options_, option.name, {*word});
    } catch (const Error&) {
      file_.complain(entry->line, format("{} must be {}, got '{}'", entry->key,
                                         option_takes(option), entry->value));
    }
  }

  /// The value in our own words; nothing where it is wrong, which was noted.
  std::optional<std::string> word_of(const Option& option, const IniEntry& entry) {
    if (const ValueWords& words = value_words(option.ini); !words.empty()) {
      Words theirs;
      for (const auto& pair : words) theirs.push_back(pair.first);
      const auto at = file_.to_choice(entry, theirs);
      return at ? std::optional(words[*at].second) : std::nullopt;
    }
    if (option.kind == OptionKind::Switch) {
      const auto on = file_.to_bool(entry);
      return on ? std::optional(options::Value<bool>::print(*on)) : std::nullopt;
    }
    if (option.kind == OptionKind::Whole) {
      const auto number =
          file_.to_int(entry, static_cast<std::int64_t>(option.least),
                       static_cast<std::int64_t>(std::min(option.most, kMostWhole)));
      return number ? std::optional(std::to_string(*number)) : std::nullopt;
    }
    if (option.kind == OptionKind::Numbers) {
      const auto numbers = file_.to_numbers(entry);
      return numbers ? std::optional(format("{}", fmt::join(*numbers, ","))) : std::nullopt;
    }
    return option.kind == OptionKind::List ? without_blanks(entry.value) : entry.value;
  }

  void read_size(const Option& option, const IniSection& section, const IniPlace& place) {
    const IniEntry* width = section.find(place.keys.front());
    const IniEntry* height = section.find(place.keys.back());
    if (width == nullptr && height == nullptr) return;
    if (width == nullptr || height == nullptr) {
      const IniEntry* given = width != nullptr ? width : height;
      file_.complain(given->line, format("{} alone is not enough; give {}", given->key,
                                         fmt::join(place.keys, " and ")));
      return;
    }
    const auto most = static_cast<std::int64_t>(kMostWhole);
    const auto w = file_.to_int(*width, 1, most);
    const auto h = file_.to_int(*height, 1, most);
    if (w && h) set_option(options_, option.name, {format("{},{}", *w, *h)});
  }

  /// Settings of ours under the keys of converter_lite; a relative path starts at this file.
  void read_settings_of(const IniEntry& entry) {
    own_settings_ = true;
    const auto folder = std::filesystem::path(file_.path()).parent_path();
    std::vector<std::string> notes = std::move(options_.notes);
    options_ = read_settings((folder / entry.value).string());
    options_.notes = std::move(notes);
  }

  /// The settings themselves: a file that `analyze target` wrote may be copied anywhere.
  void parse_settings_of(const IniEntry& entry) {
    own_settings_ = true;
    std::vector<std::string> notes = std::move(options_.notes);
    options_ = options::parse_settings(ini_unescaped(entry.value),
                                       format("{}:{}", file_.path(), entry.line));
    options_.notes = std::move(notes);
  }

  void finish_common(const IniSection& section) {
    if (options_.type == QuantType::Weight && section.find("min_quant_weight_channel") == nullptr) {
      options_.min_quant_weight_channel = kMinWeightChannel;
    }
    const IniEntry* encode = section.find("enable_encode");
    if (encode != nullptr && options_.type == QuantType::Weight) {
      options_.notes_unless_packed.push_back(format(
          "{}:{}: enable_encode has no effect on an ONNX file, which stores integers plainly; a "
          "result that ends in .qnch is encoded",
          file_.path(), encode->line));
    }
    check_bits(section, encode);
  }

  void check_bits(const IniSection& section, const IniEntry* encode) {
    const int bits = options_.weight.bits;
    const IniEntry* entry = section.find("bit_num");
    const bool fixed = options_.type == QuantType::Full || options_.type == QuantType::Dynamic;
    if (entry != nullptr && fixed && bits != 8) {
      file_.complain(
          entry->line,
          format("bit_num must be 8 for {}, got {}",
                 options_.type == QuantType::Full ? "FULL_QUANT" : "DYNAMIC_QUANT", bits));
    }
    if (encode != nullptr && options_.type == QuantType::Weight && !options_.weight.enable_encode &&
        bits != 8 && bits != 16) {
      file_.complain(encode->line,
                     format("enable_encode=false needs bit_num 8 or 16: {} bits are stored encoded",
                            bits == 0 ? "mixed" : std::to_string(bits)));
    }
  }

  /// The layout of raw files that was said elsewhere counts; that of converter_lite is told.
  void read_samples(const IniSection& section) {
    const BinLayout said = options_.data.bin_layout;
    read_data(section);
    const IniEntry* kind = section.find("input_type");
    if (said != BinLayout::Unsaid) {
      options_.data.bin_layout = said;
    } else if (kind != nullptr && options_.data.kind == DataKind::Bin) {
      options_.notes.push_back(
          format("{}:{}: BIN files of inputs with 4 dimensions are read as NHWC, as converter_lite "
                 "reads them; bin_format=NCHW in [quench_param] reads them as NCHW",
                 file_.path(), kind->line));
    }
  }

  /// converter_lite's default, where neither the file nor what it is laid over names a method.
  void set_default_method() {
    std::optional<std::string>& method = options_.config.global.activation_observer;
    if (options_.type == QuantType::Full && !own_settings_ && !method) method = "min_max";
  }

  IniFile& file_;
  QuantizeOptions& options_;
  bool own_settings_ = false;  ///< the file goes with settings of ours
};

}  // namespace
}  // namespace compat

QuantizeOptions read_config(const std::string& ini_path, QuantizeOptions base,
                            const std::function<void(QuantizeOptions&)>& override) {
  IniFile file = IniFile::read(ini_path);
  compat::ConfigReader(file, base).read(override);
  file.check();
  return base;
}

DataOptions read_data_section(const std::string& ini_path) {
  IniFile file = IniFile::read(ini_path);
  const IniSection* section = file.find(compat::kDataSection);
  QuantizeOptions options;
  if (section != nullptr) {
    compat::check_section(file, *section);
    compat::ConfigReader(file, options).read_data(*section);
  }
  file.check();
  if (section == nullptr) {
    fail(ErrorKind::BadConfig, "{}: there is no section [{}]", ini_path, compat::kDataSection);
  }
  return options.data;
}

}  // namespace quench
