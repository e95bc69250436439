// SPDX-License-Identifier: Apache-2.0
// Visitors for `list_fields`: one makes JSON of the fields it is shown, one fills them from JSON.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "options/settings_fields.h"

namespace quench {

using SettingsJson = nlohmann::ordered_json;

/// Makes an object of the fields it is shown.
class SettingsWriter {
 public:
  template <typename T>
  void operator()(const char* name, T& field) {
    json_[name] = encode(field);
  }
  template <typename Enum>
  void word(const char* name, Enum& field, const Words& words) {
    json_[name] = words.at(static_cast<std::size_t>(field));
  }
  template <typename T>
  static SettingsJson encode(T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      return field;
    } else {
      SettingsWriter inner;
      list_fields(inner, field);
      return std::move(inner.json_);
    }
  }
  static SettingsJson encode(std::string& text) { return text; }
  template <typename T>
  static SettingsJson encode(std::optional<T>& field) {
    return field ? encode(*field) : SettingsJson();
  }
  template <typename T>
  static SettingsJson encode(std::vector<T>& list) {
    SettingsJson json = SettingsJson::array();
    for (T& each : list) json.push_back(encode(each));
    return json;
  }
  template <typename T>
  static SettingsJson encode(std::map<std::string, T>& fields) {
    SettingsJson json = SettingsJson::object();
    for (auto& [name, field] : fields) json[name] = encode(field);
    return json;
  }
  /// Where the order counts: [["conv*", {...}], ...].
  template <typename T>
  static SettingsJson encode(std::pair<std::string, T>& pair) {
    return SettingsJson::array({pair.first, encode(pair.second)});
  }

 private:
  SettingsJson json_ = SettingsJson::object();
};

/// Fills the fields it is shown; what the object leaves out stays as it is. Every failure is an
/// Error(BadConfig) that names the key.
class SettingsReader {
 public:
  SettingsReader(const SettingsJson& json, std::string place)
      : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(place_, json, "an object");
  }

  template <typename T>
  void operator()(const char* name, T& field) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    if (found != json_.end()) decode(*found, field, place_ + "." + name);
  }
  template <typename Enum>
  void word(const char* name, Enum& field, const Words& words) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    if (found == json_.end()) return;
    std::string text;
    decode(*found, text, place_ + "." + name);
    const auto at = std::find(words.begin(), words.end(), text);
    if (at == words.end()) {
      refuse(place_ + "." + name, *found, format("one of {}", fmt::join(words, ", ")));
    }
    field = static_cast<Enum>(at - words.begin());
  }
  /// To be called when every field was shown: nothing else may be there.
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names_.begin(), names_.end(), key) != names_.end()) continue;
      fail(ErrorKind::BadConfig, "{}: there is no setting '{}'{}", place_, key,
           did_you_mean(key, names_));
    }
  }

  template <typename T>
  static void decode(const SettingsJson& json, T& field, const std::string& place) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) refuse(place, json, "true or false");
      field = json.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      field = static_cast<T>(integer(json, place, std::numeric_limits<T>::max()));
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) refuse(place, json, "a number");
      field = json.template get<T>();
    } else {
      SettingsReader inner(json, place);
      list_fields(inner, field);
      inner.finish();
    }
  }
  static void decode(const SettingsJson& json, std::string& text, const std::string& place) {
    if (!json.is_string()) refuse(place, json, "a text");
    text = json.get<std::string>();
  }
  template <typename T>
  static void decode(const SettingsJson& json, std::optional<T>& field, const std::string& place) {
    field.reset();
    if (!json.is_null()) decode(json, field.emplace(), place);
  }
  template <typename T>
  static void decode(const SettingsJson& json, std::vector<T>& list, const std::string& place) {
    if (!json.is_array()) refuse(place, json, "a list");
    list.clear();
    for (const SettingsJson& each : json) decode(each, list.emplace_back(), place);
  }
  template <typename T>
  static void decode(const SettingsJson& json, std::map<std::string, T>& fields,
                     const std::string& place) {
    if (!json.is_object()) refuse(place, json, "an object");
    fields.clear();
    for (const auto& [name, each] : json.items())
      decode(each, fields[name], format("{}.{}", place, name));
  }
  template <typename T>
  static void decode(const SettingsJson& json, std::pair<std::string, T>& pair,
                     const std::string& place) {
    if (!json.is_array() || json.size() != 2) refuse(place, json, "a name and its settings");
    decode(json[0], pair.first, place);
    decode(json[1], pair.second, place + "." + pair.first);
  }

 private:
  static std::int64_t integer(const SettingsJson& json, const std::string& place,
                              std::int64_t most) {
    const bool small =
        json.is_number_integer() && (!json.is_number_unsigned() ||
                                     json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
    if (!small || json.get<std::int64_t>() < 0) {
      refuse(place, json, format("a whole number from 0 to {}", most));
    }
    return json.get<std::int64_t>();
  }
  [[noreturn]] static void refuse(const std::string& place, const SettingsJson& json,
                                  std::string_view expected) {
    std::string got = json.dump(-1, ' ', false, SettingsJson::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 60) + "...";
    fail(ErrorKind::BadConfig, "{} takes {}, got {}", place, expected, got);
  }

  const SettingsJson& json_;
  std::string place_;
  std::vector<std::string> names_;
};

}  // namespace quench
