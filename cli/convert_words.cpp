// SPDX-License-Identifier: Apache-2.0
// The table from flags of quench quantize to keys of converter_lite's files.
#include "cli/convert_words.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quench::cli {
namespace {

/// What begins with another entry stands before it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kWords = {{
    {"--activation-observer min_max", "activation_quant_method=MAX_MIN"},
    {"--activation-observer KL", "activation_quant_method=KL"},
    {"--activation-observer removal_outlier", "activation_quant_method=REMOVAL_OUTLIER"},
    {"--bits", "bit_num"},
    {"--center-crop", "center_crop_width and center_crop_height"},
    {"--color", "image_to_format"},
    {"--data", "calibrate_path"},
    {"--debug-info", "debug_info_save_path"},
    {"--gptq", "quant_strategy=GPTQ"},
    {"--limit", "calibrate_size"},
    {"--mean", "normalize_mean"},
    {"--min-weight-channel", "min_quant_weight_channel"},
    {"--min-weight-size", "min_quant_weight_size"},
    {"--no-bias-correction", "bias_correction=false"},
    {"--per-channel", "per_channel=true"},
    {"--per-layer", "per_channel=false"},
    {"--resize", "resize_width and resize_height"},
    {"--skip-node", "skip_quant_node"},
    {"--std", "normalize_std"},
    {"--target", "target_device"},
    {"--type dynamic", "quant_type=DYNAMIC_QUANT"},
    {"--type full", "quant_type=FULL_QUANT"},
    {"--type weight", "quant_type=WEIGHT_QUANT"},
    // Flags that both commands have.
    {"--threads", "--threads"},
}};

constexpr std::string_view kFlagLetters = "abcdefghijklmnopqrstuvwxyz-";

/// The flag that the text begins with, up to the end of its name.
std::string_view flag_at(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of(kFlagLetters), text.size()));
}

/// Writes the flag that the text begins with in other words; gives how much of the text that was.
std::size_t translate(std::string_view text, std::string& result) {
  const std::string_view flag = flag_at(text);
  for (const auto& [ours, theirs] : kWords) {
    if (!text.starts_with(ours) || flag_at(ours) != flag) continue;
    result += theirs;
    return ours.size();
  }
  if (flag == "--shape") {
    // From "--shape x=1,3" to "--inputShape=x:1,3".
    const std::size_t end = std::min(text.find(' ', flag.size() + 1), text.size());
    const std::size_t equals = text.substr(0, end).rfind('=');
    if (equals != std::string_view::npos) {
      result += "--inputShape=";
      result.append(text.substr(flag.size() + 1, equals - flag.size() - 1)).append(":");
      return equals + 1;
    }
  }
  result.append(flag).append(" of quench quantize");
  return flag.size();
}

}  // namespace

std::string in_converter_words(std::string_view message) {
  std::string result;
  bool quoted = false;
  for (std::size_t at = 0; at < message.size();) {
    const std::string_view rest = message.substr(at);
    quoted = quoted != (rest.front() == '`');
    const bool begins = at == 0 || kFlagLetters.find(message[at - 1]) == std::string_view::npos;
    const bool flag = rest.size() > 2 && rest.starts_with("--") && rest[2] >= 'a' && rest[2] <= 'z';
    if (flag && begins && !quoted) {
      at += translate(rest, result);
    } else {
      result += rest.front();
      ++at;
    }
  }
  return result;
}

}  // namespace quench::cli
