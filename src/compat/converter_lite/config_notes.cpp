// SPDX-License-Identifier: Apache-2.0
// Two tables: settings without effect, and settings that are refused because passing over them
// would give another model than the file asks for.
#include "compat/converter_lite/config_notes.h"

#include <algorithm>

#include "base/format.h"

namespace quench::compat {
namespace {

bool always(const QuantizeOptions& /*options*/, const std::string& /*value*/) { return true; }
bool is_true(const std::string& value) {
  return value.size() == 4 && (value[0] == 't' || value[0] == 'T');
}
bool is_weight(const QuantizeOptions& options) { return options.type == QuantType::Weight; }

}  // namespace

const std::vector<IdleKey>& idle_keys() {
  static const char* const kFiles = "no temporary files are written";
  static const char* const kSmooth = "smoothing is not done";
  static const std::vector<IdleKey> keys = {
      {"common_quant_param", "workspace", always, kFiles},
      {"common_quant_param", "enable_encode",
       [](const QuantizeOptions& options, const std::string&) { return !is_weight(options); },
       "only WEIGHT_QUANT stores encoded weights"},
      {"full_quant_param", "per_channel",
       [](const QuantizeOptions& options, const std::string& value) {
         return is_true(value) && !find_target(options.config.target).per_channel;
       },
       "the target has one scale for each weight"},
      {"full_quant_param", "smooth_alpha", always, kSmooth, OptionKind::Number},
      {"full_quant_param", "enable_smooth_shift", always, kSmooth, OptionKind::Switch},
      {"full_quant_param", "enable_all_ops", always,
       "all that the target runs on integers is quantised", OptionKind::Switch},
      {"full_quant_param", "target_device",
       [](const QuantizeOptions&, const std::string& value) { return value == "KIRIN"; },
       "there is no such target; 'generic' is used"},
      {"weight_quant_param", "dequant_strategy", always,
       "a file does not say when its weights become float; `quench run --dequant on-the-fly` does, "
       "and so do `eval` and `bench`"},
      {"weight_quant_param", "max_segments",
       [](const QuantizeOptions& options, const std::string&) {
         return options.weight.max_segments != 1;
       },
       "each weight is stored in one piece"},
      {"weight_quant_param", "bias_correction",
       [](const QuantizeOptions& options, const std::string& value) {
         return is_true(value) && options.weight.bits >= 8;
       },
       "with 8 bits and more the means of weights are kept without it"},
      {"weight_quant_param", "update_mindir", always,
       "the result holds the quantised weights anyway", OptionKind::Switch},
      {"mixed_bit_weight_quant_param", "use_cv_data", always,
       "there are no built-in images; give calibrate_path", OptionKind::Switch},
      {"mixed_bit_weight_quant_param", "workspace", always, kFiles},
      {"transform_quant_param", "export_precision_mode", always,
       "scales that a model brings along are kept", OptionKind::Word},
  };
  return keys;
}

namespace {

/// Why a section as a whole changes nothing, or "".
std::string idle_section(const std::string& name, const QuantizeOptions& options) {
  struct Use {
    const char* section;
    bool used;
    const char* wanted;
  };
  const bool mixed = is_weight(options) && options.weight.bits == 0;
  const std::vector<Use> uses = {
      {"full_quant_param", options.type == QuantType::Full, "quant_type=FULL_QUANT"},
      {"weight_quant_param", is_weight(options), "quant_type=WEIGHT_QUANT"},
      {"mixed_bit_weight_quant_param", mixed, "quant_type=WEIGHT_QUANT with bit_num=0"},
      {"dynamic_quant_param", options.type == QuantType::Dynamic, "quant_type=DYNAMIC_QUANT"},
      {"common_quant_param", true, ""},
      {"data_preprocess_param", true, ""},
      {"transform_quant_param", true, ""},
      {"quench_param", true, ""},
  };
  const auto found =
      std::ranges::find_if(uses, [&](const Use& use) { return use.section == name; });
  if (found == uses.end()) return format("[{}] has no effect on an ONNX model", name);
  return found->used ? "" : format("[{}] has no effect: it is for {}", name, found->wanted);
}

/// A key of [ascend_context] or [acl_option_cfg_param] that would change the model.
struct RefusedKey {
  const char* key;
  std::vector<std::string> same;  ///< values that ask for what is done anyway
  const char* why;
};

const std::vector<RefusedKey>& refused_keys() {
  static const char* const kShapes =
      "a model has the shapes that it was read with, or those given on the command line; leave the "
      "key out and keep dimensions open that are to change";
  static const std::vector<RefusedKey> keys = {
      {"dynamic_batch_size", {}, kShapes},
      {"dynamic_dims", {}, kShapes},
      {"dynamic_image_size", {}, kShapes},
      {"input_shape", {}, kShapes},
      {"input_shape_range", {}, kShapes},
      {"input_format", {"NCHW", "ND"}, "inputs keep their layout, which is NCHW"},
      {"output_type", {"FP32"}, "outputs keep their type"},
  };
  return keys;
}

/// Complains of a value that converter_lite would not take either.
void check_value(IniFile& file, const IdleKey& idle, const IniEntry& entry) {
  static const std::vector<std::string> precisions = {"QUANT", "FLOAT32"};
  if (idle.kind == OptionKind::Switch) (void)file.to_bool(entry);
  if (idle.kind == OptionKind::Number) (void)file.to_number(entry);
  if (idle.kind == OptionKind::Word) (void)file.to_choice(entry, precisions);
}

void refuse_keys(IniFile& file, const IniSection& section) {
  for (const RefusedKey& refused : refused_keys()) {
    const IniEntry* entry = section.find(refused.key);
    if (entry == nullptr || std::ranges::find(refused.same, entry->value) != refused.same.end()) {
      continue;
    }
    file.complain(entry->line,
                  format("{}={} is not supported: {}", entry->key, entry->value, refused.why),
                  ErrorKind::Unsupported);
  }
}

}  // namespace

void note_what_has_no_effect(IniFile& file, QuantizeOptions& options) {
  const auto note = [&](int line, const std::string& sentence) {
    options.notes.push_back(format("{}:{}: {}", file.path(), line, sentence));
  };
  for (const IniSection& section : file.sections()) {
    if (section.name == "ascend_context" || section.name == "acl_option_cfg_param") {
      refuse_keys(file, section);
    }
    for (const IdleKey& idle : idle_keys()) {
      const IniEntry* entry = idle.section == section.name ? section.find(idle.key) : nullptr;
      if (entry != nullptr) check_value(file, idle, *entry);
    }
    if (const std::string why = idle_section(section.name, options); !why.empty()) {
      note(section.line, why);
      continue;
    }
    for (const IdleKey& idle : idle_keys()) {
      const IniEntry* entry = idle.section == section.name ? section.find(idle.key) : nullptr;
      if (entry == nullptr || !idle.when(options, entry->value)) continue;
      note(entry->line, format("{} has no effect: {}", idle.key, idle.why));
    }
  }
}

}  // namespace quench::compat
