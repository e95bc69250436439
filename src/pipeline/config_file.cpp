// SPDX-License-Identifier: Apache-2.0
// Quantisation settings from converter_lite's INI files.
#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "base/ini.h"
#include "pipeline/config_keys.h"
#include "quench/quantize.h"

namespace quench {
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
  ConfigReader(const IniFile& file, QuantizeOptions& options) : file_(file), options_(options) {}

  void read() {
    for (const IniSection& section : file_.sections()) check_section(file_, section);
    if (const IniSection* own = file_.find("quench_param")) read_own(*own);
    if (const IniSection* common = file_.find("common_quant_param")) read_common(*common);
    if (const IniSection* full = file_.find("full_quant_param")) read_full(*full);
    if (const IniSection* weight = file_.find("weight_quant_param")) read_weight(*weight);
    if (const IniSection* mixed = file_.find("mixed_bit_weight_quant_param")) read_mixed(*mixed);
    if (const IniSection* dynamic = file_.find("dynamic_quant_param")) read_dynamic(*dynamic);
    if (const IniSection* transform = file_.find("transform_quant_param")) {
      read_transform(*transform);
    }
    if (file_.find("data_preprocess_param") != nullptr) {
      options_.data = read_data_section(file_.path());
    }
    note_unused_sections();
  }

 private:
  /// The functions below set a field where the section has the key.
  void set(const IniSection& section, std::string_view key, bool& field) const {
    if (const IniEntry* entry = section.find(key)) field = file_.to_bool(*entry);
  }
  template <typename Number>
  void set(const IniSection& section, std::string_view key, Number& field, const Range& range) {
    if (const IniEntry* entry = section.find(key)) {
      field = static_cast<Number>(file_.to_int(*entry, static_cast<std::int64_t>(range.min),
                                               static_cast<std::int64_t>(range.max)));
    }
  }

  /// Settings of ours under the keys of converter_lite; a relative path starts at this file.
  void read_own(const IniSection& section) {
    const IniEntry* entry = section.find("settings_file");
    if (entry == nullptr) return;
    const auto folder = std::filesystem::path(file_.path()).parent_path();
    std::vector<std::string> notes = std::move(options_.notes);
    options_ = read_settings((folder / entry->value).string());
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
    check_bits(section);
    note(section.find("workspace"), "no temporary files are written");
  }

  void read_type(const IniSection& section) {
    const IniEntry* type = section.find("quant_type");
    if (type == nullptr) return;
    static const Names types = {"FULL_QUANT", "WEIGHT_QUANT", "DYNAMIC_QUANT"};
    static const std::vector<QuantType> values = {QuantType::Full, QuantType::Weight,
                                                  QuantType::Dynamic};
    options_.type = values[file_.to_choice(*type, types)];
  }

  void check_bits(const IniSection& section) const {
    const int bits = options_.weight.bits;
    const IniEntry* entry = section.find("bit_num");
    const bool fixed = options_.type == QuantType::Full || options_.type == QuantType::Dynamic;
    if (entry != nullptr && fixed && bits != 8) {
      file_.fail_at(entry->line,
                    format("bit_num must be 8 for {}, got {}",
                           section.find("quant_type") != nullptr ? section.find("quant_type")->value
                                                                 : "FULL_QUANT",
                           bits));
    }
    const IniEntry* encode = section.find("enable_encode");
    if (encode != nullptr && options_.type == QuantType::Weight && !options_.weight.enable_encode &&
        bits != 8 && bits != 16) {
      file_.fail_at(encode->line,
                    format("enable_encode=false needs bit_num 8 or 16: {} bits are stored encoded",
                           bits == 0 ? "mixed" : std::to_string(bits)));
    }
  }

  void read_full(const IniSection& section) {
    if (const IniEntry* method = section.find("activation_quant_method")) {
      static const Names methods = {"MAX_MIN", "KL", "REMOVAL_OUTLIER", "RemovalOutlier"};
      static const Names observers = {"min_max", "KL", "removal_outlier", "removal_outlier"};
      options_.config.global.activation_observer = observers[file_.to_choice(*method, methods)];
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
    note(section.find("smooth_alpha"), "smoothing is not done");
    note(section.find("enable_smooth_shift"), "smoothing is not done");
    note(section.find("enable_all_ops"), "all that the target runs on integers is quantised");
  }

  void read_device(const IniEntry& entry) {
    static const Names devices = {"NVGPU", "DSP", "ASCEND", "KIRIN"};
    static const Names targets = {"tensorrt", "dsp", "ascend", "generic"};
    const std::size_t index = file_.to_choice(entry, devices);
    options_.config.target = targets[index];
    if (devices[index] == "KIRIN") note(&entry, "there is no such target; 'generic' is used");
  }

  void read_weight(const IniSection& section) {
    WeightQuantOptions& weight = options_.weight;
    if (const IniEntry* strategy = section.find("dequant_strategy")) {
      (void)file_.to_choice(*strategy, Names{"ON_THE_FLY"});
      weight.dequant_strategy = DequantStrategy::OnTheFly;
    }
    set(section, "per_channel", weight.per_channel);
    set(section, "bias_correction", weight.bias_correction);
    if (const IniEntry* strategy = section.find("quant_strategy")) {
      weight.gptq = file_.to_choice(*strategy, Names{"MAX_MIN", "GPTQ"}) == 1;
      if (!weight.gptq) weight.observer = "min_max";
    }
    set(section, "max_segments", weight.max_segments, {1, 65535});
    bool ignored = false;
    set(section, "update_mindir", ignored);
    note(section.find("update_mindir"), "no MindIR file is written");
  }

  void read_mixed(const IniSection& section) {
    WeightQuantOptions& weight = options_.weight;
    if (const IniEntry* scale = section.find("init_scale")) {
      weight.init_scale = file_.to_number(*scale);
      if (weight.init_scale <= 0 || weight.init_scale >= 1) {
        file_.fail_at(scale->line,
                      format("init_scale must lie between 0 and 1, got '{}'", scale->value));
      }
    }
    set(section, "auto_tune", weight.auto_tune);
    bool ignored = false;
    set(section, "use_cv_data", ignored);
    set(section, "max_iterations", weight.max_iterations, {40, 65535});
    note(section.find("use_cv_data"), "there are no built-in images; give calibrate_path");
    note(section.find("workspace"), "no temporary files are written");
  }

  void read_dynamic(const IniSection& section) {
    if (const IniEntry* strategy = section.find("quant_strategy")) {
      const bool rows = file_.to_choice(*strategy, Names{"ALWC", "ACWL"}) == 1;
      options_.dynamic.quant_strategy =
          rows ? DynamicQuantOptions::Strategy::ACWL : DynamicQuantOptions::Strategy::ALWC;
    }
  }

  void read_transform(const IniSection& section) {
    const IniEntry* mode = section.find("export_precision_mode");
    if (mode == nullptr) return;
    (void)file_.to_choice(*mode, Names{"QUANT", "FLOAT32"});
    note(mode, "grids that a model brings along are kept");
  }

  void note_unused_sections() {
    static const Names used = {"common_quant_param",           "full_quant_param",
                               "data_preprocess_param",        "weight_quant_param",
                               "mixed_bit_weight_quant_param", "dynamic_quant_param",
                               "transform_quant_param",        "quench_param"};
    for (const IniSection& section : file_.sections()) {
      if (std::find(used.begin(), used.end(), section.name) != used.end()) continue;
      options_.notes.push_back(format("{}:{}: [{}] has no effect on an ONNX model", file_.path(),
                                      section.line, section.name));
    }
  }

  void note(const IniEntry* entry, std::string_view why) {
    if (entry == nullptr) return;
    options_.notes.push_back(
        format("{}:{}: {} has no effect: {}", file_.path(), entry->line, entry->key, why));
  }

  const IniFile& file_;
  QuantizeOptions& options_;
};

}  // namespace

QuantizeOptions read_config(const std::string& ini_path, QuantizeOptions base) {
  const IniFile file = IniFile::read(ini_path);
  ConfigReader(file, base).read();
  return base;
}

}  // namespace quench
