// SPDX-License-Identifier: Apache-2.0
// Whose a `foreign` string is. ONNX's are protobuf, which never begins with a zero byte; those of
// any other format begin with one and the format's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quench {

inline std::string make_foreign(std::string_view format, std::string_view text) {
  std::string result(1, '\0');
  return result.append(format).append(1, '\0').append(text);
}

/// What `format` kept in it; nothing where it is another's.
inline std::optional<std::string_view> foreign_of(std::string_view foreign,
                                                  std::string_view format) {
  const std::string head = make_foreign(format, "");
  if (!foreign.starts_with(head)) return std::nullopt;
  return foreign.substr(head.size());
}

/// Of a node that averages integers: it rounds halves away from zero. Only TFLite's files mean
/// that, so that the engine asks for it and no writer does.
inline constexpr std::string_view kHalvesAway{"\0tflite\0halves away from zero", 29};

/// Of an input of a session, which is 8-bit integers: their scale and zero point.
inline constexpr std::string_view kScaleOfInput = "scale";

/// Whether ONNX kept it.
inline bool is_onnx(std::string_view foreign) { return !foreign.starts_with('\0'); }

}  // namespace quench
