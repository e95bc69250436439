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

/// The two names in a path; the second may be "".
ModelFiles parted(const std::string& path) {
  const std::size_t comma = path.rfind(',');
  if (comma == std::string::npos) return {path, ""};
  return {path.substr(0, comma), path.substr(comma + 1)};
}

ModelFiles beside(ModelFiles names) {
  if (names.params.empty()) return names;
  names.params = (fs::path(names.model).parent_path() / names.params).string();
  return names;
}

}  // namespace

ModelFiles named_files(const std::string& path) { return beside(parted(path)); }

ModelFiles locate_model(const std::string& path) {
  std::error_code error;
  ModelFiles names = fs::exists(path, error) ? ModelFiles{path, ""} : parted(path);
  if (is_folder(names.model)) names.model = model_in(names.model);
  return beside(std::move(names));
}

std::string model_path(const std::string& model_dir, const std::string& model_filename,
                       const std::string& params_filename) {
  const std::string model =
      model_filename.empty() ? model_dir : (fs::path(model_dir) / model_filename).string();
  return params_filename.empty() ? model : model + "," + params_filename;
}

}  // namespace quench
