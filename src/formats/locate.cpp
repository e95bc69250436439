// SPDX-License-Identifier: Apache-2.0
// Finds the files of a model by the path that a user gave.
#include "formats/locate.h"

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "formats/registry.h"
#include "quench/formats.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string model_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const FormatInfo& each : all_formats()) {
    if (each.models_in == nullptr) continue;
    for (std::string& file : each.models_in(folder)) found.push_back(std::move(file));
  }
  std::ranges::sort(found);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    fail(ErrorKind::BadModel,
         "the folder '{}' holds no model that is known by its name; name the file "
         "(--model-filename)",
         folder);
  }
  fail(ErrorKind::BadModel, "the folder '{}' holds several models: {}; name one (--model-filename)",
       folder, fmt::join(found, ", "));
}

ModelFiles with_params(const std::string& model, const std::string& params) {
  const std::string file = is_folder(model) ? model_in(model) : model;
  if (params.empty()) return {file, ""};
  return {file, (fs::path(file).parent_path() / params).string()};
}

}  // namespace

ModelFiles locate_model(const std::string& path) {
  const std::size_t comma = path.rfind(',');
  std::error_code error;
  if (comma == std::string::npos || fs::exists(path, error)) return with_params(path, "");
  return with_params(path.substr(0, comma), path.substr(comma + 1));
}

std::string model_path(const std::string& model_dir, const std::string& model_filename,
                       const std::string& params_filename) {
  const std::string model =
      model_filename.empty() ? model_dir : (fs::path(model_dir) / model_filename).string();
  return params_filename.empty() ? model : model + "," + params_filename;
}

}  // namespace quench
