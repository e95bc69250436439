// SPDX-License-Identifier: Apache-2.0
// The types of options as text: what they are parsed from and printed as.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>

#include "base/format.h"
#include "quench/option_table.h"

namespace quench::options {

using Words = std::vector<std::string>;

/// The words of an enum, in the order of its values.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kWords{};
template <>
inline constexpr std::array<std::string_view, 4> kWords<QuantType> = {"none", "full", "weight",
                                                                      "dynamic"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<DequantStrategy> = {"at_load",
                                                                            "on_the_fly"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<DynamicQuantOptions::Strategy> = {"ALWC",
                                                                                          "ACWL"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<BiasCorrection> = {"fast", "full", "auto"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<Equalization> = {"never", "always", "auto"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<ColorOrder> = {"RGB", "BGR", "GRAY"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<ResizeMethod> = {"LINEAR", "NEAREST",
                                                                         "CUBIC"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<NormalizeOrder> = {"last", "first"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<DataKind> = {"auto", "image", "bin"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<BinLayout> = {"unsaid", "input", "NHWC"};

/// Each function throws Error(Usage) that names the option, what it takes and what it got.
[[noreturn]] void refuse(const Option& option, std::string_view word);
/// The last word; there must be one.
const std::string& only_word(const Option& option, const Words& words);
/// The place of the word among the choices, in any case of letters.
std::size_t choice_of(const Option& option, std::string_view word);
std::int64_t whole_of(const Option& option, std::string_view word);
double number_of(const Option& option, std::string_view word);

/// How a type is parsed and printed. The general case has no text: only stored settings hold it.
template <typename T>
struct Value {
  static constexpr OptionKind kKind = OptionKind::Other;
  static T parse(const Option& option, const Words& words) { refuse(option, words.front()); }
  static std::string print(const T& /*value*/) { return ""; }
};

template <>
struct Value<bool> {
  static constexpr OptionKind kKind = OptionKind::Switch;
  static bool parse(const Option& option, const Words& words);
  static std::string print(bool value) { return value ? "true" : "false"; }
};

template <std::integral T>
struct Value<T> {
  static constexpr OptionKind kKind = OptionKind::Whole;
  static T parse(const Option& option, const Words& words) {
    const std::int64_t value = whole_of(option, only_word(option, words));
    if (!std::in_range<T>(value)) refuse(option, words.back());
    return static_cast<T>(value);
  }
  static std::string print(T value) { return std::to_string(value); }
};

template <>
struct Value<double> {
  static constexpr OptionKind kKind = OptionKind::Number;
  static double parse(const Option& option, const Words& words) {
    return number_of(option, only_word(option, words));
  }
  static std::string print(double value) { return format("{}", value); }
};

template <>
struct Value<std::string> {
  static constexpr OptionKind kKind = OptionKind::Text;
  static std::string parse(const Option& option, const Words& words);
  static std::string print(const std::string& value) { return value; }
};

template <typename Enum>
requires std::is_enum_v<Enum>
struct Value<Enum> {
  static constexpr OptionKind kKind = OptionKind::Word;
  static Enum parse(const Option& option, const Words& words) {
    const std::size_t at = choice_of(option, only_word(option, words));
    const auto& all = kWords<Enum>;
    return static_cast<Enum>(std::ranges::find(all, option.choices[at]) - all.begin());
  }
  static std::string print(Enum value) {
    return std::string(kWords<Enum>.at(static_cast<std::size_t>(value)));
  }
};

template <typename T>
struct Value<std::optional<T>> {
  static constexpr OptionKind kKind = Value<T>::kKind;
  static std::optional<T> parse(const Option& option, const Words& words) {
    return Value<T>::parse(option, words);
  }
  static std::string print(const std::optional<T>& value) {
    return value ? Value<T>::print(*value) : "";
  }
};

template <>
struct Value<Words> {
  static constexpr OptionKind kKind = OptionKind::List;
  static Words parse(const Option& option, const Words& words);
  static std::string print(const Words& value);
};

template <>
struct Value<std::vector<double>> {
  static constexpr OptionKind kKind = OptionKind::Numbers;
  static std::vector<double> parse(const Option& option, const Words& words);
  static std::string print(const std::vector<double>& value);
};

template <>
struct Value<ImageSize> {
  static constexpr OptionKind kKind = OptionKind::Size;
  static ImageSize parse(const Option& option, const Words& words);
  static std::string print(const ImageSize& value);
};

template <>
struct Value<std::map<std::string, Shape>> {
  static constexpr OptionKind kKind = OptionKind::Shapes;
  static std::map<std::string, Shape> parse(const Option& option, const Words& words);
  static std::string print(const std::map<std::string, Shape>& value);
};

}  // namespace quench::options
