// SPDX-License-Identifier: Apache-2.0
// Loading and saving models: finds the format and names the file in every error.
#include "formats/registry.h"

#include <array>
#include <filesystem>
#include <vector>

#include "base/format.h"
#include "base/nearest.h"
#include "quench/files.h"
#include "quench/formats.h"

namespace quench {
namespace {

/// The first format that takes the file for its own; null: none does.
const FormatInfo* sniffed(std::span<const std::byte> file) {
  for (const FormatInfo& each : all_formats()) {
    if (each.sniff(file)) return &each;
  }
  return nullptr;
}

[[noreturn]] void fail_unknown(std::span<const std::byte> file, const std::string& path) {
  if (file.empty()) fail(ErrorKind::BadModel, "the file is empty; get it again");
  std::string names;
  const FormatInfo* named = nullptr;
  for (const FormatInfo& each : all_formats()) {
    names += names.empty() ? "" : ", ";
    names += each.name;
    if (!each.extension.empty() && path.ends_with(each.extension)) named = &each;
  }
  const std::string_view kind = guess_kind(file);
  if (kind.empty() && named != nullptr) {
    fail(ErrorKind::BadModel,
         "its name ends in {}, but it does not begin as a file of the format {} does, nor of any "
         "other that is read (known: {}); get it again",
         named->extension, named->name, names);
  }
  if (kind.empty()) {
    fail(ErrorKind::BadModel, "the file is no model in a known format (known: {}), or is damaged",
         names);
  }
  fail(ErrorKind::BadModel, "this looks like {}, which is not read (known: {}); export it to ONNX",
       kind, names);
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

WrittenModel written_model(const std::string& path) {
  std::error_code error;
  const bool folder = path.ends_with('/') || std::filesystem::is_directory(path, error);
  std::string extensions;
  for (const FormatInfo& each : all_formats()) {
    if (each.stage == nullptr) continue;
    if (folder) {
      if (each.file_in_folder.empty()) continue;
      return {each, {(std::filesystem::path(path) / each.file_in_folder).string(), ""}};
    }
    const auto is_named = [&](const std::string& model) {
      return model.ends_with(each.extension) ||
             std::filesystem::path(model).filename() == each.other_name;
    };
    if (is_named(path)) return {each, {path, ""}};
    const ModelFiles files = named_files(path);
    if (each.own_params && is_named(files.model)) return {each, files};
    extensions += extensions.empty() ? "" : " or ";
    extensions += each.extension;
  }
  fail(ErrorKind::Usage, "a model is written to a file that ends in {}, or to a folder/; got '{}'",
       extensions, path);
}

const FormatInfo* format_of(const std::string& path) {
  const auto file = MappedFile::open(locate_model(path).model);
  return sniffed(file->bytes());
}

std::vector<std::string> model_data_files(const ModelFiles& files) {
  const FormatInfo* format = sniffed(MappedFile::open(files.model)->bytes());
  if (format == nullptr || format->data_files == nullptr) return {};
  return format->data_files(files);
}

std::vector<FormatName> model_formats() {
  std::vector<FormatName> names;
  for (const FormatInfo& each : all_formats()) {
    names.push_back({each.name, each.extension, each.summary});
  }
  return names;
}

std::vector<std::string> format_operators(std::string_view format) {
  std::vector<std::string> names;
  for (const FormatInfo& each : all_formats()) {
    if (each.operators == nullptr) continue;
    if (each.name == format) return each.operators();
    names.emplace_back(each.name);
  }
  fail(ErrorKind::Usage, "operators are listed for {}; got '{}'{}", fmt::join(names, ", "), format,
       did_you_mean(format, names));
}

std::string_view model_format(const std::string& path) {
  const FormatInfo* format = format_of(path);
  return format == nullptr ? "" : format->name;
}

namespace {

Model load_any(const std::string& path, bool to_show) {
  const ModelFiles files = locate_model(path);
  const auto file = MappedFile::open(files.model);  // its errors name the file already
  try {
    const FormatInfo* format = sniffed(file->bytes());
    if (format == nullptr) fail_unknown(file->bytes(), files.model);
    if (!to_show && !format->only_shown.empty())
      fail(ErrorKind::Unsupported, "{}", format->only_shown);
    return format->read(files, file);
  } catch (Error& error) {
    throw error.in(files.model);
  }
}

}  // namespace

Model load(const std::string& path) { return load_any(path, false); }
Model load_to_show(const std::string& path) { return load_any(path, true); }

void save(const Model& model, const std::string& path, const SaveOptions& options) {
  Outputs outputs;
  save(model, path, options, outputs);
  outputs.commit();
}

std::uint64_t save(const Model& model, const std::string& path, const SaveOptions& options,
                   Outputs& outputs) {
  const WrittenModel target = written_model(path);
  try {
    return outputs.add(target.format.stage(model, target.files, options));
  } catch (Error& error) {
    throw error.in(path);
  }
}

void expect_writable(const Model& model, const std::string& path) {
  const FormatInfo& format = written_model(path).format;
  if (format.expect_writable == nullptr) return;
  try {
    format.expect_writable(model);
  } catch (Error& error) {
    throw error.in(path);
  }
}

Model as_read(const Model& model, const std::string& path) {
  const auto read = path.empty() ? nullptr : written_model(path).format.as_read;
  return read == nullptr ? model : read(model);
}

std::string target_of_output(const std::string& path) {
  return std::string(written_model(path).format.target);
}

std::string target_of_model(const std::string& path) {
  const FormatInfo* format = format_of(path);
  return format == nullptr ? "" : std::string(format->target);
}

std::string file_for_target(std::string_view target) {
  for (const FormatInfo& each : all_formats()) {
    if (!each.target.empty() && each.target == target) return format("model{}", each.extension);
  }
  return format("model{}", onnx_format().extension);
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
  const WrittenModel target = written_model(path);
  if (path.ends_with('/')) make_folder(path);
  outputs.writes(target.files.model, what);
  if (target.format.own_data_file == nullptr) return;
  const std::string data = target.format.own_data_file(target.files);
  if (!data.empty()) outputs.may_write(data, "the weights of " + what);
}

}  // namespace quench
