// SPDX-License-Identifier: Apache-2.0
// Which files of a folder are samples, in which order, with which labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/labels.h"
#include "quench/data.h"
#include "quench/files.h"

namespace quench::data {

/// What the files of a folder are.
enum class FileKind { Image, Bin, Npy, Cifar };

/// The samples of a folder, sorted by name.
struct Folder {
  std::string path;
  FileKind kind = FileKind::Image;
  std::vector<std::string> names;    ///< relative to the folder
  std::vector<std::int64_t> labels;  ///< one for each name, or none

  std::string full_path(std::size_t index) const { return path + "/" + names[index]; }
};

bool has_image_extension(const std::string& name);
/// Whether a file of this name in a folder of samples would be one of them.
bool may_be_sample(const std::string& name, DataKind kind);

/// Lists a folder. With labels by name, these choose the files; a folder that holds only folders is
/// read as one folder a class. Throws Error(BadData) when labels and files do not match.
Folder list_folder(const std::string& path, DataKind kind, const Labels* labels);

/// Tells `outputs` of the files of samples and labels, which must not be written over.
void reads_samples(Outputs& outputs, const DataOptions& from);

}  // namespace quench::data
