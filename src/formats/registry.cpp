// SPDX-License-Identifier: Apache-2.0
// Loading and saving models: finds the format and names the file in every error.
#include "formats/registry.h"

#include <array>
#include <filesystem>
#include <vector>

#include "base/format.h"
#include "quench/files.h"
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

/// A model that is to be written: its format, the path that this takes, and its first file.
struct Written {
  const FormatInfo& format;
  std::string path;
  std::string file;
};

Written written(const std::string& given) {
  std::string path = given;
  std::error_code error;
  const bool folder = path.ends_with('/') || std::filesystem::is_directory(path, error);
  std::string extensions;
  for (const FormatInfo& each : all_formats()) {
    if (each.stage == nullptr) continue;
    if (folder && !each.file_in_folder.empty()) {
      path = (std::filesystem::path(path) / each.file_in_folder).string();
      return {each, path, path};
    }
    const bool named = std::filesystem::path(path).filename() == each.other_name;
    if (path.ends_with(each.extension) || named) return {each, path, path};
    // A second file may be named behind a comma.
    const std::size_t comma = path.rfind(',');
    if (comma != std::string::npos && each.models_in != nullptr &&
        std::string_view(path).substr(0, comma).ends_with(each.extension)) {
      return {each, path, path.substr(0, comma)};
    }
    extensions += extensions.empty() ? "" : " or ";
    extensions += each.extension;
  }
  fail(ErrorKind::Usage, "a model is written to a file that ends in {}; got '{}'", extensions,
       path);
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

std::vector<std::string> model_data_files(const ModelFiles& files) {
  const auto file = MappedFile::open(files.model);
  for (const FormatInfo& each : all_formats()) {
    if (!each.sniff(file->bytes())) continue;
    return each.data_files == nullptr ? std::vector<std::string>() : each.data_files(files);
  }
  return {};
}

std::vector<FormatName> model_formats() {
  std::vector<FormatName> names;
  for (const FormatInfo& each : all_formats()) {
    names.push_back({each.name, each.extension, each.summary});
  }
  return names;
}

Model load(const std::string& path) {
  const ModelFiles files = locate_model(path);
  const auto file = MappedFile::open(files.model);  // its errors name the file already
  try {
    for (const FormatInfo& each : all_formats()) {
      if (each.sniff(file->bytes())) return each.read(files, file);
    }
    fail_unknown(file->bytes());
  } catch (Error& error) {
    throw error.in(files.model);
  }
}

void save(const Model& model, const std::string& path, const SaveOptions& options) {
  Outputs outputs;
  save(model, path, options, outputs);
  outputs.commit();
}

std::uint64_t save(const Model& model, const std::string& path, const SaveOptions& options,
                   Outputs& outputs) {
  const Written target = written(path);
  try {
    return outputs.add(target.format.stage(model, target.path, options));
  } catch (Error& error) {
    throw error.in(path);
  }
}

void reads_model(Outputs& outputs, const std::string& path, const std::string& what) {
  const ModelFiles files = locate_model(path);
  outputs.reads(files.model, what);
  std::error_code error;
  if (!std::filesystem::is_regular_file(files.model, error)) return;
  for (const std::string& data : model_data_files(files))
    outputs.reads(data, "the weights of " + what);
}

void writes_model(Outputs& outputs, const std::string& path, const std::string& what) {
  const Written target = written(path);
  if (path.ends_with('/')) make_folder(path);
  outputs.writes(target.file, what);
  if (target.format.own_data_file == nullptr) return;
  const std::string data = target.format.own_data_file(target.path);
  if (!data.empty()) outputs.may_write(data, "the weights of " + what);
}

}  // namespace quench
