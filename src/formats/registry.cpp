// SPDX-License-Identifier: Apache-2.0
// Loading and saving models: finds the format and names the file in every error.
#include "formats/registry.h"

#include <array>
#include <vector>

#include "base/format.h"
#include "quench/formats.h"

namespace quench {
namespace {

[[noreturn]] void fail_unknown(std::span<const std::byte> file) {
  if (file.empty()) fail(ErrorKind::BadModel, "the file is empty; get it again");
  std::string names;
  for (const FormatInfo& each : all_formats()) {
    names += names.empty() ? "" : ", ";
    names += each.name;
  }
  const std::string_view kind = guess_kind(file);
  if (kind.empty()) {
    fail(ErrorKind::BadModel, "the file is no model in a known format (known: {}), or is damaged",
         names);
  }
  fail(ErrorKind::BadModel, "this looks like {}, which is not read (known: {}); export it to ONNX",
       kind, names);
}

const FormatInfo& format_for_path(std::string_view path) {
  for (const FormatInfo& each : all_formats()) {
    if (path.ends_with(each.extension)) return each;
  }
  return all_formats().front();
}

}  // namespace

std::span<const FormatInfo> all_formats() {
  static const auto formats = std::to_array<FormatInfo>({
#define QUENCH_FORMAT(name) name##_format(),
#include "formats/formats.inc"
#undef QUENCH_FORMAT
  });
  return formats;
}

std::vector<FormatName> model_formats() {
  std::vector<FormatName> names;
  for (const FormatInfo& each : all_formats()) {
    names.push_back({each.name, each.extension, each.summary});
  }
  return names;
}

Model load(const std::string& path) {
  const auto file = MappedFile::open(path);  // its errors name the file already
  try {
    for (const FormatInfo& each : all_formats()) {
      if (each.sniff(file->bytes())) return each.read(path, file);
    }
    fail_unknown(file->bytes());
  } catch (Error& error) {
    throw error.in(path);
  }
}

void save(const Model& model, const std::string& path, const SaveOptions& options) {
  try {
    format_for_path(path).write(model, path, options);
  } catch (Error& error) {
    throw error.in(path);
  }
}

}  // namespace quench
