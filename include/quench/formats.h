// SPDX-License-Identifier: Apache-2.0
// The formats that models are read from and written to, and the files that they take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quench/files.h"
#include "quench/model.h"

namespace quench {

/// A row of the list that `quench list formats` shows.
struct FormatName {
  std::string_view name;
  std::string_view extension;
  std::string_view summary;
};
std::vector<FormatName> model_formats();

/// What a format calls the operators (or layers) that are read from it; a name that no format has
/// is an Error(Usage).
std::vector<std::string> format_operators(std::string_view format);
/// The name of the format of the model at a path, or "".
std::string_view model_format(const std::string& path);

/// As `load`, also for models that can only be looked at.
Model load_to_show(const std::string& path);

/// What `load` and every job take as the path of a model that is named by its folder and, where the
/// folder holds several or they have no common names, the files in it; empty names are left out.
std::string model_path(const std::string& model_dir, const std::string& model_filename,
                       const std::string& params_filename);

/// The target whose runtime reads what is written to this path; "": none in particular. Throws
/// Error(Usage) as `writes_model` does.
std::string target_of_output(const std::string& path);
/// Likewise of the model at a path.
std::string target_of_model(const std::string& path);
/// What a model for a target is called in a folder of ours: "model.onnx".
std::string file_for_target(std::string_view target);

/// As `save` without `outputs`, which puts the file in place. Returns the bytes of the model and
/// its data file.
std::uint64_t save(const Model& model, const std::string& path, const SaveOptions& options,
                   Outputs& outputs);

/// Tells `outputs` that a model is read, with the data files that it names.
void reads_model(Outputs& outputs, const std::string& path, const std::string& what);
/// Tells `outputs` that a model will be written. Throws Error(Usage) where the path does not end as
/// the files of a format do.
void writes_model(Outputs& outputs, const std::string& path, const std::string& what);

}  // namespace quench
