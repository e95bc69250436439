// SPDX-License-Identifier: Apache-2.0
// Notes on channels as JSON, and how they are undone.
#include "tune/channel_notes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace quench {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPaddedKey = "quench.padded_channels";
constexpr std::string_view kScaledKey = "quench.equalized";
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// A factor is its logarithm in three digits: they take half the room of decimals, and 4096 steps
/// between a number and its double are finer than any quantised value can tell.
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::int64_t kOctave = 4096;
constexpr std::int64_t kZero = 32 * kOctave;  ///< the code of 1
constexpr std::size_t kWidth = 3;

std::string encode(const std::vector<double>& factors) {
  std::string text;
  for (const double factor : factors) {
    const auto steps = std::llround(std::log2(factor) * static_cast<double>(kOctave));
    const auto code =
        static_cast<std::size_t>(std::clamp<std::int64_t>(kZero + steps, 0, 2 * kZero - 1));
    for (const std::size_t shift : {12U, 6U, 0U}) text += kDigits[code >> shift & 63U];
  }
  return text;
}

/// Nothing where the text is no such list.
std::vector<double> decode(std::string_view text) {
  std::vector<double> factors;
  if (text.size() % kWidth != 0) return {};
  for (std::size_t at = 0; at < text.size(); at += kWidth) {
    std::size_t code = 0;
    for (const char digit : text.substr(at, kWidth)) {
      const std::size_t value = kDigits.find(digit);
      if (value == std::string_view::npos) return {};
      code = code << 6U | value;
    }
    const auto steps = static_cast<std::int64_t>(code) - kZero;
    factors.push_back(std::exp2(static_cast<double>(steps) / static_cast<double>(kOctave)));
  }
  return factors;
}

[[noreturn]] void fail_note(std::string_view key) {
  fail(ErrorKind::BadModel, "the metadata '{}' are not as quench writes them; take them out", key);
}

void read_padded(const Json& json, ChannelNotes& notes) {
  if (!json.is_object()) fail_note(kPaddedKey);
  for (const auto& [name, channels] : json.items()) {
    const bool whole = channels.is_number_integer() && channels.get<std::int64_t>() > 0;
    if (!whole) fail_note(kPaddedKey);
    notes.padded[name] = channels.get<std::int64_t>();
  }
}

void read_scaled(const Json& json, ChannelNotes& notes) {
  if (!json.is_array()) fail_note(kScaledKey);
  for (const Json& each : json) {
    const bool whole = each.is_object() && each.contains("values") && each["values"].is_array() &&
                       each.contains("factors") && each["factors"].is_string();
    if (!whole) fail_note(kScaledKey);
    tune::ScaledValues& scaled = notes.scaled.emplace_back();
    scaled.scales = decode(each["factors"].get_ref<const std::string&>());
    if (scaled.scales.empty()) fail_note(kScaledKey);
    for (const Json& name : each["values"]) {
      if (!name.is_string()) fail_note(kScaledKey);
      scaled.values.push_back(name.get<std::string>());
    }
  }
}

/// The first channels of a tensor [N, C, ...].
Tensor first_channels(const Tensor& tensor, std::int64_t channels) {
  Shape shape = tensor.shape();
  const std::size_t row = tensor.bytes().size() / static_cast<std::size_t>(shape[0]);
  const std::size_t kept =
      row / static_cast<std::size_t>(shape[1]) * static_cast<std::size_t>(channels);
  shape[1] = channels;
  Tensor result = Tensor::zeros(tensor.dtype(), shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i) {
    std::memcpy(result.mutable_bytes().data() + i * kept, tensor.bytes().data() + i * row, kept);
  }
  return result;
}

}  // namespace

void note_channels(Model& model, ChannelNotes notes, const Graph& float_graph) {
  const auto unknown = [&](const std::string& name) { return float_graph.find(name) == kNoValue; };
  std::erase_if(notes.padded, [&](const auto& each) { return unknown(each.first); });
  for (tune::ScaledValues& each : notes.scaled) std::erase_if(each.values, unknown);
  std::erase_if(model.metadata, [](const auto& entry) {
    return entry.first == kPaddedKey || entry.first == kScaledKey;
  });
  const auto write = [&](std::string_view key, const Json& json) {
    if (json.empty()) return;
    model.metadata.emplace_back(key, json.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  write(kPaddedKey, Json(notes.padded));
  Json scaled = Json::array();
  for (const tune::ScaledValues& each : notes.scaled) {
    scaled.push_back({{"values", each.values}, {"factors", encode(each.scales)}});
  }
  write(kScaledKey, scaled);
}

ChannelNotes read_channel_notes(const Model& model) {
  ChannelNotes notes;
  for (const auto& [key, text] : model.metadata) {
    if (key != kPaddedKey && key != kScaledKey) continue;
    if (text.size() > kMostBytes) fail_note(key);
    const Json json = Json::parse(text, nullptr, false);
    key == kPaddedKey ? read_padded(json, notes) : read_scaled(json, notes);
  }
  return notes;
}

ChannelRestorer::ChannelRestorer(const Model& model, std::string path) : path_(std::move(path)) {
  try {
    notes_ = read_channel_notes(model);
  } catch (Error& error) {
    throw error.in(path_);
  }
  for (std::size_t i = 0; i < notes_.scaled.size(); ++i) {
    for (const std::string& value : notes_.scaled[i].values) scaled_[value] = i;
  }
}

void ChannelRestorer::fail_channels(const std::string& value, const Tensor& tensor,
                                    std::size_t noted) const {
  fail(ErrorKind::BadModel, "{}: '{}' is {}, but the metadata tell of {} channels", path_, value,
       to_string(tensor.shape()), noted);
}

Tensor ChannelRestorer::restored(const std::string& value, Tensor tensor) const {
  if (const auto padded = notes_.padded.find(value); padded != notes_.padded.end()) {
    const bool fits =
        tensor.rank() >= 2 && tensor.size() > 0 && padded->second <= tensor.shape()[1];
    if (!fits) fail_channels(value, tensor, static_cast<std::size_t>(padded->second));
    tensor = first_channels(tensor, padded->second);
  }
  const auto scaled = scaled_.find(value);
  if (scaled == scaled_.end()) return tensor;
  const std::vector<double>& scales = notes_.scaled[scaled->second].scales;
  const std::size_t channels = scales.size();
  const bool fits = tensor.rank() >= 2 && tensor.size() > 0 &&
                    tensor.shape()[1] == static_cast<std::int64_t>(channels);
  if (!fits) fail_channels(value, tensor, channels);
  std::vector<float> numbers = to_float(tensor);
  const std::size_t inner = numbers.size() / channels / static_cast<std::size_t>(tensor.shape()[0]);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] *= static_cast<float>(scales[i / inner % channels]);
  }
  return Tensor::of<float>(tensor.shape(), std::span<const float>(numbers));
}

}  // namespace quench
