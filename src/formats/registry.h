// SPDX-License-Identifier: Apache-2.0
// The table of model formats. A new one is a folder beside onnx/ and a line in formats.inc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "formats/locate.h"
#include "quench/model.h"

namespace quench {

/// What a format offers.
struct FormatInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view extension;  ///< of files that `save` writes in this format
  /// Whether the file looks like this format; must be cheap and never throw.
  bool (*sniff)(std::span<const std::byte> file);
  Model (*read)(const ModelFiles& files, const std::shared_ptr<const MappedFile>& model);
  /// The files beside a model that it reads; null where there are none. Must not throw.
  std::vector<std::string> (*data_files)(const ModelFiles& files);
  /// That of them which saving another model in its place replaces, or "".
  std::string (*own_data_file)(const ModelFiles& files);
  std::unique_ptr<Staged> (*stage)(const Model& model, const ModelFiles& files,
                                   const SaveOptions& options);
  /// The files of this format in a folder that stands for a model, by their names; null: a folder
  /// never does. Must not throw.
  std::vector<std::string> (*models_in)(const std::string& folder) = nullptr;
  /// What `save` calls a model that is given a folder, and a name without an extension that it
  /// takes, too; "": neither.
  std::string_view file_in_folder = {};
  std::string_view other_name = {};
  /// Parameters lie in a file of their own, which a path may name behind a comma.
  bool own_params = false;
  bool fake_quantize = false;  ///< it has the form that SaveOptions::fake_quantize asks for
  std::string_view quantized_note = {};  ///< what to know of quantised models in it; "": nothing
  /// The target whose runtime reads it, and for which models are quantised that are written in it;
  /// "": none in particular.
  std::string_view target = {};
  /// What it calls the operators that are read from it.
  std::vector<std::string> (*operators)() = nullptr;
  bool float_recurrent = false;  ///< weights of recurrent layers are floats in it
  /// Throws Error(Unsupported) that names what it cannot hold of a model; null: it holds all.
  void (*expect_writable)(const Model& model) = nullptr;
  /// What reading gives of a model that was written, where runs of the two differ: by roundings, or
  /// by operators that stand for others. Null: they do not.
  Model (*as_read)(const Model& model) = nullptr;
  /// Models that can be looked at and nothing else: what every other command says; "": any command
  /// takes them.
  std::string_view only_shown = {};
};

#define QUENCH_FORMAT(name) FormatInfo name##_format();
#include "formats/formats.inc"
#undef QUENCH_FORMAT

/// Every format, in the order in which files are offered to them.
std::span<const FormatInfo> all_formats();

/// The format that the file at a path is of; null: none that is known.
const FormatInfo* format_of(const std::string& path);

/// A model that is to be written: its format and files.
struct WrittenModel {
  const FormatInfo& format;
  ModelFiles files;
};
/// By the name alone. Throws Error(Usage) where it does not end as the files of a format do.
WrittenModel written_model(const std::string& path);

/// Throws Error(Unsupported) for a model that cannot be written at this path, before it is worked
/// on.
void expect_writable(const Model& model, const std::string& path);

/// The model that this path will give once `model` is written there; for "", the model.
Model as_read(const Model& model, const std::string& path);

/// The files beside a model, which is there, that reading it opens.
std::vector<std::string> model_data_files(const ModelFiles& files);

/// What a file that no format reads looks like: "a TFLite model"; empty when unknown.
std::string_view guess_kind(std::span<const std::byte> file) noexcept;

}  // namespace quench
