// SPDX-License-Identifier: Apache-2.0
// The sections and keys that converter_lite's INI files may have.
#include "compat/converter_lite/config_keys.h"

#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "compat/converter_lite/config_notes.h"
#include "compat/converter_lite/config_words.h"

namespace quench::compat {
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
  std::vector<KnownSection> sections = {{"quench_param", {"settings_file"}}};
  const auto add = [&](const std::string& section, const std::string& key) {
    auto found = std::ranges::find(sections, section, &KnownSection::name);
    if (found == sections.end()) found = sections.insert(found, {section, {}});
    found->keys.push_back(key);
  };
  for (const Option& option : all_options()) {
    const IniPlace place = ini_place(option);
    for (const std::string& key : place.keys) add(place.section, key);
  }
  for (const IdleKey& idle : idle_keys()) add(idle.section, idle.key);
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

}  // namespace quench::compat
