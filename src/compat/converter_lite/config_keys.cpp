// SPDX-License-Identifier: Apache-2.0
// The sections and keys that converter_lite's INI files may have.
#include "compat/converter_lite/config_keys.h"

#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "compat/converter_lite/config_notes.h"
#include "compat/converter_lite/config_words.h"
#include "quench/converter_lite.h"

namespace quench {
namespace compat {
namespace {

using Names = std::vector<std::string>;

struct KnownSection {
  std::string name;
  Names keys;  ///< empty: any
};

/// [ascend_context] overrides [acl_option_cfg_param], and takes more.
const Names& ascend_keys() {
  static const Names keys = {"aoe_mode",
                             "buffer_optimize",
                             "custom_fusion_pattern",
                             "custom_opp_path",
                             "device_id",
                             "disable_reuse_memory",
                             "dump_model_name",
                             "dynamic_batch_size",
                             "dynamic_dims",
                             "dynamic_image_size",
                             "enable_custom_op",
                             "enable_tiling_generation",
                             "fusion_switch_config_file_path",
                             "input_format",
                             "input_shape",
                             "input_shape_range",
                             "input_shape_vector",
                             "inputs_to_variable",
                             "insert_op_config_file_path",
                             "om_file_path",
                             "op_attrs",
                             "op_select_impl_mode",
                             "output_type",
                             "outputs_to_variable",
                             "plugin_custom_ops",
                             "precision_mode",
                             "provider"};
  return keys;
}

/// Sections of other parts of converter_lite.
const std::vector<KnownSection>& other_sections() {
  static const std::vector<KnownSection> sections = {
      {"ascend_context", ascend_keys()},
      {"acl_option_cfg_param", ascend_keys()},
      {"cpu_option_cfg_param", {"architecture", "instruction"}},
      {"registry", {"plugin_path", "disable_fusion", "fusion_blacklists"}},
      {"micro_param",
       {"target", "codegen_mode", "debug_mode", "support_parallel", "enable_micro", "save_path",
        "project_name", "keep_original_weight", "changeable_weights_name", "inputs_shape",
        "dynamic_dim_params"}},
      {"om_converter_options",
       {"input_name_vector", "input_shape_vector", "input_data_type_vector", "output_name_vector",
        "output_shape_vector", "output_data_type_vector"}},
      {"acl_init_options", {}},
      {"acl_build_options", {}},
      {"aoe_global_options", {}},
      {"aoe_tuning_options", {}},
      {"ge_global_options", {}},
      {"ge_session_options", {}},
      {"ge_graph_options", {}},
      {"graph_kernel_param", {}},
  };
  return sections;
}

/// Sections that say how to quantise: the keys of options, and those that change nothing here.
std::vector<KnownSection> quantisation_sections() {
  std::vector<KnownSection> sections = {{"quench_param", {"settings", "settings_file"}}};
  for (const ConverterKey& key : converter_keys()) {
    auto found = std::ranges::find(sections, key.section, &KnownSection::name);
    if (found == sections.end()) found = sections.insert(found, {key.section, {}});
    found->keys.push_back(key.key);
  }
  return sections;
}

const std::vector<KnownSection>& known_sections() {
  static const std::vector<KnownSection> sections = [] {
    std::vector<KnownSection> all = quantisation_sections();
    all.insert(all.end(), other_sections().begin(), other_sections().end());
    return all;
  }();
  return sections;
}

}  // namespace

void check_section(IniFile& file, const IniSection& section) {
  Names names;
  for (const KnownSection& known : known_sections()) {
    if (known.name == section.name) {
      if (!known.keys.empty()) file.expect_keys(section, known.keys);
      return;
    }
    names.push_back(known.name);
  }
  file.complain(section.line, format("there is no section [{}]{}", section.name,
                                     did_you_mean(section.name, names)));
}

}  // namespace compat

std::vector<ConverterKey> converter_keys() {
  std::vector<ConverterKey> keys;
  for (const Option& option : all_options()) {
    const compat::IniPlace place = compat::ini_place(option);
    if (!place.value.empty()) continue;  // the same key with another value
    for (const std::string& key : place.keys) {
      const auto same = [&](const ConverterKey& other) {
        return other.section == place.section && other.key == key;
      };
      // Of a member and the flag that stands for it, the flag is what can be given.
      auto found = std::ranges::find_if(keys, same);
      if (found == keys.end()) found = keys.insert(found, {.section = place.section, .key = key});
      found->option = &option;
      found->words = compat::value_words(option.ini);
    }
  }
  for (const compat::IdleKey& idle : compat::idle_keys()) {
    const auto found = std::ranges::find_if(keys, [&](const ConverterKey& other) {
      return other.section == idle.section && other.key == idle.key;
    });
    if (found == keys.end()) {
      keys.push_back({.section = idle.section, .key = idle.key, .idle = idle.why});
    } else {
      found->idle = idle.why;
    }
  }
  return keys;
}

}  // namespace quench
