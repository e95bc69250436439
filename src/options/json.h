// SPDX-License-Identifier: Apache-2.0
// The types of options as JSON.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "options/values.h"

namespace quench::options {

using Json = nlohmann::ordered_json;

/// The fields of types that stand in settings as objects, named once: a visitor writes or reads
/// each.
template <typename Visitor>
void list_fields(Visitor& visit, ImageSize& size) {
  visit("width", size.width);
  visit("height", size.height);
}
template <typename Visitor>
void list_fields(Visitor& visit, QuantRule& rule) {
  visit("activation_observer", rule.activation_observer);
  visit("weight_observer", rule.weight_observer);
  visit("activation_bits", rule.activation_bits);
  visit("weight_bits", rule.weight_bits);
  visit("per_channel", rule.per_channel);
  visit("skip", rule.skip);
  visit("type", rule.type);
}

/// Makes an object of the fields it is shown.
class Encoder {
 public:
  template <typename T>
  void operator()(const char* name, T& field) {
    json_[name] = encode(field);
  }
  template <typename T>
  static Json encode(T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      return field;
    } else if constexpr (std::is_enum_v<T>) {
      return Value<T>::print(field);
    } else {
      Encoder inner;
      list_fields(inner, field);
      return std::move(inner.json_);
    }
  }
  static Json encode(std::string& text) { return text; }
  template <typename T>
  static Json encode(std::optional<T>& field) {
    return field ? encode(*field) : Json();
  }
  template <typename T>
  static Json encode(std::vector<T>& list) {
    Json json = Json::array();
    for (T& each : list) json.push_back(encode(each));
    return json;
  }
  template <typename T>
  static Json encode(std::map<std::string, T>& fields) {
    Json json = Json::object();
    for (auto& [name, field] : fields) json[name] = encode(field);
    return json;
  }
  /// Where the order counts: [["conv*", {...}], ...].
  template <typename T>
  static Json encode(std::pair<std::string, T>& pair) {
    return Json::array({pair.first, encode(pair.second)});
  }

 private:
  Json json_ = Json::object();
};

/// Fills the fields it is shown; what the object leaves out stays as it is. Every failure is an
/// Error(BadConfig) that names the key.
class Decoder {
 public:
  Decoder(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(place_, json, "an object");
  }

  template <typename T>
  void operator()(const char* name, T& field) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    if (found != json_.end()) decode(*found, field, place_ + "." + name);
  }
  /// To be called when every field was shown: nothing else may be there.
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(names_, key) == names_.end()) refuse_key(place_, key, names_);
    }
  }

  template <typename T>
  static void decode(const Json& json, T& field, const std::string& place) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) refuse(place, json, "true or false");
      field = json.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      field = static_cast<T>(integer(json, place, std::numeric_limits<T>::max()));
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) refuse(place, json, "a number");
      field = json.template get<T>();
    } else if constexpr (std::is_enum_v<T>) {
      const auto& words = kWords<T>;
      const std::string text = json.is_string() ? json.template get<std::string>() : "";
      const auto at = std::ranges::find(words, text);
      if (at == words.end()) refuse(place, json, format("one of {}", fmt::join(words, ", ")));
      field = static_cast<T>(at - words.begin());
    } else {
      Decoder inner(json, place);
      list_fields(inner, field);
      inner.finish();
    }
  }
  static void decode(const Json& json, std::string& text, const std::string& place) {
    if (!json.is_string()) refuse(place, json, "a text");
    text = json.get<std::string>();
  }
  template <typename T>
  static void decode(const Json& json, std::optional<T>& field, const std::string& place) {
    field.reset();
    if (!json.is_null()) decode(json, field.emplace(), place);
  }
  template <typename T>
  static void decode(const Json& json, std::vector<T>& list, const std::string& place) {
    if (!json.is_array()) refuse(place, json, "a list");
    list.clear();
    for (const Json& each : json) decode(each, list.emplace_back(), place);
  }
  template <typename T>
  static void decode(const Json& json, std::map<std::string, T>& fields, const std::string& place) {
    if (!json.is_object()) refuse(place, json, "an object");
    fields.clear();
    for (const auto& [name, each] : json.items())
      decode(each, fields[name], format("{}.{}", place, name));
  }
  template <typename T>
  static void decode(const Json& json, std::pair<std::string, T>& pair, const std::string& place) {
    if (!json.is_array() || json.size() != 2) refuse(place, json, "a name and its settings");
    decode(json[0], pair.first, place);
    decode(json[1], pair.second, place + "." + pair.first);
  }

  [[noreturn]] static void refuse(const std::string& place, const Json& json,
                                  std::string_view expected) {
    std::string got = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 60) + "...";
    fail(ErrorKind::BadConfig, "{} takes {}, got {}", place, expected, got);
  }
  [[noreturn]] static void refuse_key(const std::string& place, const std::string& key,
                                      const Words& names) {
    fail(ErrorKind::BadConfig, "{}: there is no setting '{}'{}", place, key,
         did_you_mean(key, names));
  }

 private:
  static std::int64_t integer(const Json& json, const std::string& place, std::int64_t most) {
    const bool small =
        json.is_number_integer() && (!json.is_number_unsigned() ||
                                     json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
    if (!small || json.get<std::int64_t>() < 0) {
      refuse(place, json, format("a whole number from 0 to {}", most));
    }
    return json.get<std::int64_t>();
  }

  const Json& json_;
  std::string place_;
  Words names_;
};

}  // namespace quench::options
