// SPDX-License-Identifier: Apache-2.0
// Quantisation settings from converter_lite's INI files.
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/format.h"
#include "compat/converter_lite/config_keys.h"
#include "compat/converter_lite/config_notes.h"
#include "data/data_section.h"
#include "quench/converter_lite.h"

namespace quench {
namespace compat {
namespace {

using Names = std::vector<std::string>;

/// converter_lite's own: convolutions with no more channels keep their weights in float.
constexpr std::int64_t kMinWeightChannel = 16;

/// Node names between commas; blanks around a name are no part of it.
Names split_names(std::string_view text) {
  Names names;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t first = part.find_first_not_of(" \t");
    if (first != std::string_view::npos) {
      names.emplace_back(part.substr(first, part.find_last_not_of(" \t") + 1 - first));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

/// Lays the file over the options, one section after the other.
class ConfigReader {
 public:
  ConfigReader(IniFile& file, QuantizeOptions& options) : file_(file), options_(options) {}

  void read() {
    for (const IniSection& section : file_.sections()) check_section(file_, section);
    if (const IniSection* own = file_.find("quench_param")) read_own(*own);
    if (const IniSection* common = file_.find("common_quant_param")) read_common(*common);
    if (const IniSection* full = file_.find("full_quant_param")) read_full(*full);
    if (const IniSection* weight = file_.find("weight_quant_param")) read_weight(*weight);
    if (const IniSection* mixed = file_.find("mixed_bit_weight_quant_param")) read_mixed(*mixed);
    if (const IniSection* dynamic = file_.find("dynamic_quant_param")) read_dynamic(*dynamic);
    if (const IniSection* transform = file_.find("transform_quant_param")) {
      if (const IniEntry* mode = transform->find("export_precision_mode")) {
        (void)file_.to_choice(*mode, Names{"QUANT", "FLOAT32"});
      }
    }
    if (const IniSection* data = file_.find(data::kDataSection)) read_data(*data);
    set_default_method();
    note_what_has_no_effect(file_, options_);
  }

 private:
  /// The functions below set a field where the section has the key, rightly.
  void set(const IniSection& section, std::string_view key, bool& field) const {
    if (const IniEntry* entry = section.find(key)) field = file_.to_bool(*entry).value_or(field);
  }
  template <typename Number>
  void set(const IniSection& section, std::string_view key, Number& field, const Range& range) {
    if (const IniEntry* entry = section.find(key)) {
      field = static_cast<Number>(file_
                                      .to_int(*entry, static_cast<std::int64_t>(range.min),
                                              static_cast<std::int64_t>(range.max))
                                      .value_or(field));
    }
  }
  /// The place of the key's value among the words; nothing where it is left out or wrong.
  std::optional<std::size_t> choice(const IniSection& section, std::string_view key,
                                    const Names& words) const {
    const IniEntry* entry = section.find(key);
    return entry == nullptr ? std::nullopt : file_.to_choice(*entry, words);
  }

  void read_own(const IniSection& section) {
    if (const IniEntry* entry = section.find("settings_file")) read_settings_of(*entry);
    if (const auto layout = choice(section, "bin_format", {"NCHW", "NHWC"})) {
      options_.data.bin_layout = *layout == 0 ? BinLayout::Input : BinLayout::Nhwc;
    }
  }

  /// Settings of ours under the keys of converter_lite; a relative path starts at this file.
  void read_settings_of(const IniEntry& entry) {
    own_settings_ = true;
    const auto folder = std::filesystem::path(file_.path()).parent_path();
    std::vector<std::string> notes = std::move(options_.notes);
    options_ = read_settings((folder / entry.value).string());
    options_.notes = std::move(notes);
  }

  void read_common(const IniSection& section) {
    read_type(section);
    set(section, "bit_num", options_.weight.bits, {0, 16});
    set(section, "min_quant_weight_size", options_.min_quant_weight_size, {0, 65535});
    if (options_.type == QuantType::Weight) options_.min_quant_weight_channel = kMinWeightChannel;
    set(section, "min_quant_weight_channel", options_.min_quant_weight_channel, {0, 65535});
    if (const IniEntry* skip = section.find("skip_quant_node")) {
      options_.config.skip_quant_node = split_names(skip->value);
    }
    if (const IniEntry* path = section.find("debug_info_save_path")) {
      options_.debug_info_save_path = path->value;
    }
    set(section, "enable_encode", options_.weight.enable_encode);
    note_encoding(section.find("enable_encode"));
    check_bits(section);
  }

  void note_encoding(const IniEntry* entry) {
    if (entry == nullptr || options_.type != QuantType::Weight) return;
    options_.notes_unless_packed.push_back(format(
        "{}:{}: enable_encode has no effect on an ONNX file, which stores integers plainly; a "
        "result that ends in .qnch is encoded",
        file_.path(), entry->line));
  }

  void read_type(const IniSection& section) {
    constexpr std::array kTypes = {QuantType::Full, QuantType::Weight, QuantType::Dynamic};
    if (const auto type =
            choice(section, "quant_type", {"FULL_QUANT", "WEIGHT_QUANT", "DYNAMIC_QUANT"})) {
      options_.type = kTypes[*type];
    }
  }

  void check_bits(const IniSection& section) {
    const int bits = options_.weight.bits;
    const IniEntry* entry = section.find("bit_num");
    const bool fixed = options_.type == QuantType::Full || options_.type == QuantType::Dynamic;
    if (entry != nullptr && fixed && bits != 8) {
      file_.complain(
          entry->line,
          format("bit_num must be 8 for {}, got {}",
                 options_.type == QuantType::Full ? "FULL_QUANT" : "DYNAMIC_QUANT", bits));
    }
    const IniEntry* encode = section.find("enable_encode");
    if (encode != nullptr && options_.type == QuantType::Weight && !options_.weight.enable_encode &&
        bits != 8 && bits != 16) {
      file_.complain(encode->line,
                     format("enable_encode=false needs bit_num 8 or 16: {} bits are stored encoded",
                            bits == 0 ? "mixed" : std::to_string(bits)));
    }
  }

  void read_full(const IniSection& section) {
    if (const auto method = choice(section, "activation_quant_method",
                                   {"MAX_MIN", "KL", "REMOVAL_OUTLIER", "RemovalOutlier"})) {
      constexpr std::array kObservers = {"min_max", "KL", "removal_outlier", "removal_outlier"};
      options_.config.global.activation_observer = kObservers[*method];
    }
    set(section, "bias_correction", options_.bias_correction);
    if (const IniEntry* channels = section.find("per_channel")) {
      options_.config.global.per_channel = file_.to_bool(*channels);
    }
    if (const IniEntry* device = section.find("target_device")) read_device(*device);
    if (const IniEntry* alpha = section.find("smooth_alpha")) (void)file_.to_number(*alpha);
    for (const char* key : {"enable_smooth_shift", "enable_all_ops"}) {
      bool ignored = false;
      set(section, key, ignored);
    }
  }

  void read_device(const IniEntry& entry) {
    static const Names devices = {"NVGPU", "DSP", "ASCEND", "KIRIN"};
    constexpr std::array kTargets = {"tensorrt", "dsp", "ascend", "generic"};
    const auto index = file_.to_choice(entry, devices);
    if (!index) return;
    options_.config.target = kTargets[*index];
    if (devices[*index] == "KIRIN") note(entry, "there is no such target; 'generic' is used");
  }

  void read_weight(const IniSection& section) {
    WeightQuantOptions& weight = options_.weight;
    if (choice(section, "dequant_strategy", {"ON_THE_FLY"})) {
      weight.dequant_strategy = DequantStrategy::OnTheFly;
    }
    set(section, "per_channel", weight.per_channel);
    set(section, "bias_correction", weight.bias_correction);
    if (const auto strategy = choice(section, "quant_strategy", {"MAX_MIN", "GPTQ"})) {
      weight.gptq = *strategy == 1;
      if (!weight.gptq) weight.observer = "min_max";
    }
    set(section, "max_segments", weight.max_segments, {1, 65535});
    bool ignored = false;
    set(section, "update_mindir", ignored);
  }

  void read_mixed(const IniSection& section) {
    WeightQuantOptions& weight = options_.weight;
    if (const IniEntry* scale = section.find("init_scale")) {
      const double value = file_.to_number(*scale).value_or(weight.init_scale);
      if (value <= 0 || value >= 1) {
        file_.complain(scale->line,
                       format("init_scale must lie between 0 and 1, got '{}'", scale->value));
      } else {
        weight.init_scale = value;
      }
    }
    set(section, "auto_tune", weight.auto_tune);
    bool ignored = false;
    set(section, "use_cv_data", ignored);
    set(section, "max_iterations", weight.max_iterations, {40, 65535});
  }

  void read_dynamic(const IniSection& section) {
    if (const auto strategy = choice(section, "quant_strategy", {"ALWC", "ACWL"})) {
      options_.dynamic.quant_strategy = *strategy == 1 ? DynamicQuantOptions::Strategy::ACWL
                                                       : DynamicQuantOptions::Strategy::ALWC;
    }
  }

  void read_data(const IniSection& section) {
    const BinLayout said = options_.data.bin_layout;
    options_.data = data::read_section(file_, section);
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

  void note(const IniEntry& entry, std::string_view why) {
    options_.notes.push_back(
        format("{}:{}: {} has no effect: {}", file_.path(), entry.line, entry.key, why));
  }

  IniFile& file_;
  QuantizeOptions& options_;
  bool own_settings_ = false;  ///< the file goes with settings of ours
};

}  // namespace
}  // namespace compat

QuantizeOptions read_config(const std::string& ini_path, QuantizeOptions base) {
  IniFile file = IniFile::read(ini_path);
  compat::ConfigReader(file, base).read();
  file.check();
  return base;
}

}  // namespace quench
