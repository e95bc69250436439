// SPDX-License-Identifier: Apache-2.0
// converter_lite's words for options and their values.
#include "compat/converter_lite/config_words.h"

#include <algorithm>
#include <map>

#include "quench/converter_lite.h"

namespace quench {
namespace compat {

IniPlace ini_place(const Option& option) {
  IniPlace place;
  if (option.ini.empty()) return place;
  const std::size_t dot = option.ini.find('.');
  const std::size_t equals = std::min(option.ini.find('='), option.ini.size());
  const std::string key(option.ini.substr(dot + 1, equals - dot - 1));
  place.section = option.ini.substr(0, dot);
  if (equals < option.ini.size()) place.value = option.ini.substr(equals + 1);
  if (option.kind == OptionKind::Size) {
    place.keys = {key + "_width", key + "_height"};
  } else {
    place.keys = {key};
  }
  return place;
}

const ValueWords& value_words(std::string_view ini) {
  static const std::map<std::string, ValueWords, std::less<>> words = {
      {"common_quant_param.quant_type",
       {{"FULL_QUANT", "full"}, {"WEIGHT_QUANT", "weight"}, {"DYNAMIC_QUANT", "dynamic"}}},
      {"full_quant_param.activation_quant_method",
       {{"MAX_MIN", "min_max"},
        {"KL", "KL"},
        {"REMOVAL_OUTLIER", "removal_outlier"},
        {"RemovalOutlier", "removal_outlier"}}},
      {"full_quant_param.target_device",
       {{"NVGPU", "tensorrt"}, {"DSP", "dsp"}, {"ASCEND", "ascend"}, {"KIRIN", "generic"}}},
      {"weight_quant_param.dequant_strategy", {{"ON_THE_FLY", "on_the_fly"}}},
      {"weight_quant_param.quant_strategy", {{"MAX_MIN", "false"}, {"GPTQ", "true"}}},
      {"dynamic_quant_param.quant_strategy", {{"ALWC", "ALWC"}, {"ACWL", "ACWL"}}},
      {"data_preprocess_param.input_type", {{"IMAGE", "image"}, {"BIN", "bin"}}},
      {"data_preprocess_param.image_to_format", {{"RGB", "RGB"}, {"GRAY", "GRAY"}, {"BGR", "BGR"}}},
      {"data_preprocess_param.resize_method",
       {{"LINEAR", "LINEAR"}, {"NEAREST", "NEAREST"}, {"CUBIC", "CUBIC"}}},
      {"quench_param.bin_format", {{"NCHW", "input"}, {"NHWC", "NHWC"}}},
  };
  static const ValueWords none;
  const auto found = words.find(ini);
  return found == words.end() ? none : found->second;
}

namespace {

constexpr std::string_view kFlagLetters = "abcdefghijklmnopqrstuvwxyz-";

/// The flag that the text begins with, up to the end of its name.
std::string_view flag_at(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of(kFlagLetters), text.size()));
}

/// What an option is called there, with the value that follows it where that has another word;
/// gives how much of `rest`, which begins behind the flag, that value was.
std::size_t name_there(const Option& option, std::string_view rest, std::string& result) {
  const IniPlace place = ini_place(option);
  const ValueWords& words = value_words(option.ini);
  result += place.keys.front();
  if (place.keys.size() > 1) result += " and " + place.keys.back();
  if (!place.value.empty()) result += "=" + place.value;
  if (option.kind == OptionKind::Switch && place.value.empty()) {
    const auto on = std::ranges::find(words, "true", &ValueWords::value_type::second);
    result += on == words.end() ? "=true" : "=" + on->first;
  }
  for (const auto& [theirs, ours] : words) {
    if (!rest.starts_with(" " + ours)) continue;
    result += "=" + theirs;
    return ours.size() + 1;
  }
  return 0;
}

/// Writes the flag that the text begins with in other words; gives how much of the text that was.
std::size_t translate(std::string_view text, std::string& result) {
  const std::string_view flag = flag_at(text);
  const std::string_view rest = text.substr(flag.size());
  if (flag == "--threads") {  // a flag that both commands have
    result += flag;
    return flag.size();
  }
  for (const Option& option : all_options()) {
    if (option.name != flag.substr(2) || option.ini.empty()) continue;
    return flag.size() + name_there(option, rest, result);
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
}  // namespace compat

std::string in_converter_words(std::string_view message) {
  using namespace compat;
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

}  // namespace quench
