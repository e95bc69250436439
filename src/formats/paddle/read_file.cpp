// SPDX-License-Identifier: Apache-2.0
// Finds and reads the files of a Paddle model.
#include <filesystem>

#include "base/format.h"
#include "formats/foreign.h"
#include "formats/paddle/file.h"
#include "formats/paddle/observed_scales.h"
#include "formats/paddle/params.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// The combined file of parameters, or "" where there is none.
std::string combined_file(const ModelFiles& files) {
  const std::string path = params_file(files);
  return !files.params.empty() || is_file(path) ? path : "";
}

std::vector<Parameter> expected(const Program& program) {
  std::vector<Parameter> result;
  for (const VarItem* var : parameters_of(program)) {
    const auto count = var->shape ? num_elements(*var->shape) : std::nullopt;
    result.push_back({var->name, count.value_or(-1)});
  }
  return result;
}

/// A file for each parameter, called as the parameter is, in the program's folder.
std::map<std::string, Tensor> read_separate(const std::vector<Parameter>& parameters,
                                            const fs::path& folder) {
  std::map<std::string, Tensor> tensors;
  for (const Parameter& each : parameters) {
    const fs::path path = folder / each.name;
    const bool inside = each.name.find("..") == std::string::npos && !each.name.starts_with('/');
    if (!inside || !is_file(path)) {
      fail(ErrorKind::BadModel,
           "the program has {} parameters, but there is neither a .pdiparams or __params__ file "
           "beside it nor one called '{}'; name the file (--params-filename)",
           parameters.size(), each.name);
    }
    const auto file = MappedFile::open(path.string());
    tensors.emplace(each.name, read_single({file->bytes(), file}, each));
  }
  return tensors;
}

}  // namespace

std::string params_file(const ModelFiles& files) {
  if (!files.params.empty()) return files.params;
  const fs::path model = files.model;
  if (model.filename() == "__model__") return (model.parent_path() / "__params__").string();
  return fs::path(model).replace_extension(".pdiparams").string();
}

std::map<std::string, Tensor> read_parameters(const Program& program, const ModelFiles& files) {
  const std::vector<Parameter> parameters = expected(program);
  if (parameters.empty()) return {};
  const std::string path = combined_file(files);
  if (path.empty()) return read_separate(parameters, fs::path(files.model).parent_path());
  const auto file = MappedFile::open(path);
  try {
    std::map<std::string, Tensor> tensors;
    std::vector<Tensor> read = read_combined({file->bytes(), file}, parameters);
    for (std::size_t i = 0; i < read.size(); ++i) {
      tensors.emplace(parameters[i].name, std::move(read[i]));
    }
    return tensors;
  } catch (Error& error) {
    throw error.in(path);
  }
}

Model read_model(const ModelFiles& files, const std::shared_ptr<const MappedFile>& program) {
  const auto bytes = program->bytes();
  const bool pir = is_pir(bytes);
  Program parsed = pir ? read_pir(bytes) : read_desc(bytes);
  unify_quantization(parsed);
  drop_unread(parsed);
  expect_readable(parsed);
  const std::map<std::string, Tensor> parameters = read_parameters(parsed, files);
  Model model = translate(parsed, parameters);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  model.foreign = pir ? make_foreign(kPirForeign, text)
                      : make_foreign(kProgramForeign, with_thresholds(bytes, parameters));
  return model;
}

std::vector<std::string> data_files(const ModelFiles& files) {
  const std::string path = combined_file(files);
  if (!path.empty()) return {path};
  std::vector<std::string> found;
  try {
    const auto file = MappedFile::open(files.model);
    const Program program =
        is_pir(file->bytes()) ? read_pir(file->bytes()) : read_desc(file->bytes());
    for (const VarItem* var : parameters_of(program)) {
      found.push_back((fs::path(files.model).parent_path() / var->name).string());
    }
  } catch (const Error&) {
    // What cannot be read has no files of its own.
  }
  return found;
}

bool is_pir_file(const std::string& path) {
  try {
    return is_pir(MappedFile::open(path)->bytes());
  } catch (const Error&) {
    return false;
  }
}

}  // namespace quench::paddle
