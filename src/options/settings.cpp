// SPDX-License-Identifier: Apache-2.0
// The settings of a job as JSON, and the place they have in a model's metadata.
#include "options/settings.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "options/settings_json.h"

namespace quench {
namespace {

/// Reports of large models take a few MB.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// A report or settings begin with a brace; no model does.
bool is_json(std::span<const std::byte> bytes) {
  const auto blank = [](std::byte byte) {
    const char c = static_cast<char>(byte);
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
  };
  const auto first = std::ranges::find_if_not(bytes, blank);
  return first != bytes.end() && static_cast<char>(*first) == '{';
}

/// Nesting beyond any settings, which would only serve to exhaust the stack.
bool too_deep(std::string_view text) {
  constexpr int kMost = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '[')) {
      if (++depth > kMost) return true;
    } else if (!quoted && (text[i] == '}' || text[i] == ']')) {
      --depth;
    }
  }
  return false;
}

QuantizeOptions parse_settings(std::string_view text, const std::string& place) {
  if (text.size() > kMostBytes || too_deep(text)) {
    fail(ErrorKind::BadConfig, "{} is too large or too deep for settings", place);
  }
  SettingsJson json = SettingsJson::parse(text, nullptr, false);
  if (json.is_discarded()) fail(ErrorKind::BadConfig, "{} is not JSON", place);
  if (json.is_object() && json.contains("settings")) json = SettingsJson(json["settings"]);
  QuantizeOptions options;
  SettingsReader::decode(json, options, place);
  return options;
}

}  // namespace

std::string settings_json(const QuantizeOptions& options) {
  QuantizeOptions shown = options;  // a visitor that fills fields wants them changeable
  return SettingsWriter::encode(shown).dump(-1, ' ', false, SettingsJson::error_handler_t::replace);
}

QuantizeOptions read_settings(const std::string& path) {
  {
    const auto file = MappedFile::open(path);
    if (is_json(file->bytes())) {
      const auto bytes = file->bytes();
      return parse_settings({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    }
  }
  const Model model = load(path);
  for (const auto& [key, value] : model.metadata) {
    if (key == kSettingsKey) return parse_settings(value, format("{}: {}", path, key));
  }
  fail(ErrorKind::BadConfig,
       "{} holds no settings: it takes a report of `quench quantize --json`, or a model that "
       "`quench quantize` wrote",
       path);
}

void note_origin(Model& model, const QuantizeOptions& options, std::string_view source) {
  std::erase_if(model.metadata,
                [](const auto& entry) { return entry.first.starts_with("quench."); });
  if (!options.store_settings) return;
  const auto note = [&](std::string_view key, std::string_view value) {
    model.metadata.emplace_back(key, value);
  };
  note(kVersionKey, QUENCH_VERSION);
  note(kSourceKey, source);
  note(kSettingsKey, settings_json(options));
}

}  // namespace quench
