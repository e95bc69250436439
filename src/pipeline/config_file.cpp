// SPDX-License-Identifier: Apache-2.0
// Quantisation settings from converter_lite's INI files.
#include <algorithm>

#include "base/format.h"
#include "base/ini.h"
#include "base/nearest.h"
#include "quench/quantize.h"

namespace quench {
namespace {

using Names = std::vector<std::string>;

struct KnownSection {
  std::string name;
  Names keys;
};

const Names& ascend_keys() {
  static const Names keys = {"input_format",
                             "input_shape",
                             "input_shape_vector",
                             "input_shape_range",
                             "dynamic_dims",
                             "dynamic_batch_size",
                             "dynamic_image_size",
                             "precision_mode",
                             "op_select_impl_mode",
                             "output_type",
                             "device_id",
                             "provider",
                             "fusion_switch_config_file_path",
                             "insert_op_config_file_path",
                             "buffer_optimize",
                             "disable_reuse_memory",
                             "aoe_mode",
                             "plugin_custom_ops",
                             "custom_fusion_pattern",
                             "op_attrs"};
  return keys;
}

/// Sections and their keys. [data_preprocess_param] has no keys here: the data room checks them.
const std::vector<KnownSection>& known_sections() {
  static const std::vector<KnownSection> sections = {
      {"common_quant_param",
       {"quant_type", "bit_num", "min_quant_weight_size", "min_quant_weight_channel",
        "skip_quant_node", "debug_info_save_path", "enable_encode", "workspace"}},
      {"full_quant_param",
       {"activation_quant_method", "bias_correction", "per_channel", "target_device",
        "smooth_alpha", "enable_smooth_shift"}},
      {"data_preprocess_param", {}},
      {"weight_quant_param",
       {"dequant_strategy", "per_channel", "bias_correction", "quant_strategy", "max_segments",
        "update_mindir"}},
      {"mixed_bit_weight_quant_param",
       {"init_scale", "auto_tune", "use_cv_data", "max_iterations"}},
      {"dynamic_quant_param", {"quant_strategy"}},
      {"transform_quant_param", {"export_precision_mode"}},
      {"ascend_context", ascend_keys()},
      {"acl_option_cfg_param", ascend_keys()},
      {"cpu_option_cfg_param", {"architecture", "instruction"}},
  };
  return sections;
}

void check_section(const IniFile& file, const IniSection& section) {
  Names names;
  for (const KnownSection& known : known_sections()) {
    if (known.name == section.name) {
      if (!known.keys.empty()) file.expect_keys(section, known.keys);
      return;
    }
    names.push_back(known.name);
  }
  file.fail_at(section.line, format("there is no section [{}]{}", section.name,
                                    did_you_mean(section.name, names)));
}

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
    if (const IniSection* common = file_.find("common_quant_param")) read_common(*common);
    if (const IniSection* full = file_.find("full_quant_param")) read_full(*full);
    if (file_.find("data_preprocess_param") != nullptr) {
      options_.data = read_data_section(file_.path());
    }
    note_unused_sections();
  }

 private:
  void read_common(const IniSection& section) {
    read_type(section);
    if (const IniEntry* bits = section.find("bit_num")) read_bits(*bits);
    if (const IniEntry* size = section.find("min_quant_weight_size")) {
      options_.min_quant_weight_size = file_.to_int(*size, 0, 65535);
    }
    if (const IniEntry* channels = section.find("min_quant_weight_channel")) {
      options_.min_quant_weight_channel = file_.to_int(*channels, 0, 65535);
    }
    if (const IniEntry* skip = section.find("skip_quant_node")) {
      options_.config.skip_quant_node = split_names(skip->value);
    }
    if (const IniEntry* encode = section.find("enable_encode")) (void)file_.to_bool(*encode);
    note(section.find("debug_info_save_path"), "quench compare shows the error of each layer");
    note(section.find("workspace"), "no temporary files are written");
  }

  void read_type(const IniSection& section) {
    const IniEntry* type = section.find("quant_type");
    if (type == nullptr) return;
    static const Names types = {"FULL_QUANT", "WEIGHT_QUANT", "DYNAMIC_QUANT"};
    if (file_.to_choice(*type, types) != 0) {
      fail(ErrorKind::Unsupported, "{}:{}: quant_type {} is not supported yet; FULL_QUANT is",
           file_.path(), type->line, type->value);
    }
    options_.quant_type = type->value;
  }

  void read_bits(const IniEntry& entry) const {
    const std::int64_t bits = file_.to_int(entry, 0, 16);
    if (options_.quant_type == "FULL_QUANT" && bits != 8) {
      file_.fail_at(entry.line, format("bit_num must be 8 for FULL_QUANT, got {}", bits));
    }
  }

  void read_full(const IniSection& section) {
    if (const IniEntry* method = section.find("activation_quant_method")) {
      static const Names methods = {"MAX_MIN", "KL", "REMOVAL_OUTLIER", "RemovalOutlier"};
      static const Names observers = {"min_max", "KL", "removal_outlier", "removal_outlier"};
      options_.config.global.activation_observer = observers[file_.to_choice(*method, methods)];
    }
    if (const IniEntry* correct = section.find("bias_correction")) {
      options_.bias_correction = file_.to_bool(*correct);
    }
    if (const IniEntry* channels = section.find("per_channel")) {
      options_.config.global.per_channel = file_.to_bool(*channels);
    }
    if (const IniEntry* device = section.find("target_device")) read_device(*device);
    if (const IniEntry* alpha = section.find("smooth_alpha")) (void)file_.to_number(*alpha);
    if (const IniEntry* shift = section.find("enable_smooth_shift")) (void)file_.to_bool(*shift);
    note(section.find("smooth_alpha"), "smoothing is not done");
    note(section.find("enable_smooth_shift"), "smoothing is not done");
  }

  void read_device(const IniEntry& entry) {
    static const Names devices = {"NVGPU", "DSP", "ASCEND", "KIRIN"};
    static const Names targets = {"tensorrt", "dsp", "ascend", "generic"};
    const std::size_t index = file_.to_choice(entry, devices);
    options_.config.target = targets[index];
    if (devices[index] == "KIRIN") note(&entry, "there is no such target; 'generic' is used");
  }

  void note_unused_sections() {
    static const Names used = {"common_quant_param", "full_quant_param", "data_preprocess_param"};
    for (const IniSection& section : file_.sections()) {
      if (std::find(used.begin(), used.end(), section.name) != used.end()) continue;
      options_.notes.push_back(format("{}:{}: [{}] has no effect on full quantisation to ONNX",
                                      file_.path(), section.line, section.name));
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
