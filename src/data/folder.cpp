// SPDX-License-Identifier: Apache-2.0
// Lists folders of samples.
#include "data/folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/format.h"
#include "data/paths.h"

namespace quench::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kImageExtensions = {".jpg",  ".jpeg", ".png", ".bmp",
                                                              ".webp", ".ppm",  ".pgm"};

std::string extension_of(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return extension;
}

bool is_cifar_name(const std::string& name) {
  return (name.starts_with("data_batch") || name.starts_with("test_batch")) &&
         name.ends_with(".bin");
}

bool has_kind(const std::string& name, FileKind kind) {
  switch (kind) {
    case FileKind::Image:
      return has_image_extension(name);
    case FileKind::Bin:
      return extension_of(name) == ".bin" && !is_cifar_name(name);
    case FileKind::Npy:
      return extension_of(name) == ".npy";
    case FileKind::Cifar:
      return is_cifar_name(name);
  }
  return false;
}

struct Entries {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

Entries entries_of(const std::string& path) {
  Entries entries;
  std::error_code code;
  for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(".")) continue;
    if (it->is_regular_file(ignored)) entries.files.push_back(name);
    if (it->is_directory(ignored)) entries.folders.push_back(name);
  }
  if (code) fail(ErrorKind::Io, "{}: {}", path, code.message());
  std::sort(entries.files.begin(), entries.files.end());
  std::sort(entries.folders.begin(), entries.folders.end());
  return entries;
}

FileKind kind_of(const std::vector<std::string>& files, DataKind wanted, const std::string& path) {
  if (wanted == DataKind::Image) return FileKind::Image;
  if (wanted == DataKind::Bin) return FileKind::Bin;
  std::map<FileKind, const std::string*> found;
  for (const FileKind kind : {FileKind::Image, FileKind::Cifar, FileKind::Bin, FileKind::Npy}) {
    for (const std::string& name : files) {
      if (has_kind(name, kind)) found.emplace(kind, &name);
    }
  }
  if (found.empty()) {
    fail(ErrorKind::BadData,
         "{} holds no samples; expected images, .bin or .npy files, or a folder of images a class",
         path);
  }
  if (found.size() > 1) {
    fail(ErrorKind::BadData,
         "{} mixes kinds of samples ('{}' and '{}'); put each in its own folder", path,
         *found.begin()->second, *std::next(found.begin())->second);
  }
  return found.begin()->first;
}

// Files of the kind; all of them when the caller says what they are.
std::vector<std::string> of_kind(const std::vector<std::string>& files, FileKind kind,
                                 DataKind wanted) {
  std::vector<std::string> names;
  std::copy_if(files.begin(), files.end(), std::back_inserter(names), [&](const std::string& name) {
    return wanted != DataKind::Auto || has_kind(name, kind);
  });
  return names;
}

Folder list_classes(const std::string& path, const std::vector<std::string>& classes) {
  Folder folder{path, FileKind::Image, {}, {}};
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (const std::string& file : entries_of(path + "/" + classes[label]).files) {
      if (!has_image_extension(file)) continue;
      folder.names.push_back(classes[label] + "/" + file);
      folder.labels.push_back(static_cast<std::int64_t>(label));
    }
  }
  return folder;
}

// The file that a label line means: by its path inside the folder, or by its bare name.
std::string find_named(const std::string& path, const std::string& name) {
  std::error_code code;
  const std::string bare = fs::path(name).filename().string();
  for (const std::string& candidate : {name, bare}) {
    if (!candidate.empty() && fs::is_regular_file(fs::path(path) / candidate, code))
      return candidate;
  }
  return "";
}

void apply_labels(Folder& folder, const Labels& labels) {
  std::map<std::string, std::int64_t> chosen;
  for (std::size_t i = 0; i < labels.names.size(); ++i) {
    const std::string name = find_named(folder.path, labels.names[i]);
    if (name.empty() && labels.names_more) continue;
    if (name.empty()) {
      fail(ErrorKind::BadData, "{} names '{}', which is not in {}", labels.path, labels.names[i],
           folder.path);
    }
    if (!chosen.emplace(name, labels.indices[i]).second) {
      fail(ErrorKind::BadData, "{} names '{}' more than once", labels.path, name);
    }
  }
  for (const std::string& name : folder.names) {
    if (!chosen.contains(name)) {
      fail(ErrorKind::BadData, "'{}' in {} has no label in {}", name, folder.path, labels.path);
    }
  }
  folder.names.clear();
  folder.labels.clear();
  for (auto& [name, label] : chosen) {
    folder.names.push_back(name);
    folder.labels.push_back(label);
  }
}

}  // namespace

bool has_image_extension(const std::string& name) {
  const std::string extension = extension_of(name);
  return std::find(kImageExtensions.begin(), kImageExtensions.end(), extension) !=
         kImageExtensions.end();
}

bool may_be_sample(const std::string& name, DataKind kind) {
  if (name.starts_with(".")) return false;
  const auto kinds = {FileKind::Image, FileKind::Cifar, FileKind::Bin, FileKind::Npy};
  return kind != DataKind::Auto ||
         std::ranges::any_of(kinds, [&](FileKind each) { return has_kind(name, each); });
}

Folder list_folder(const std::string& path, DataKind kind, const Labels* labels) {
  const Entries entries = entries_of(path);
  Folder folder;
  if (entries.files.empty() && !entries.folders.empty() && kind != DataKind::Bin) {
    folder = list_classes(path, entries.folders);
  } else {
    const FileKind file_kind = kind_of(entries.files, kind, path);
    folder = {path, file_kind, of_kind(entries.files, file_kind, kind), {}};
  }
  if (labels != nullptr && labels->by_name()) apply_labels(folder, *labels);
  if (folder.names.empty()) fail(ErrorKind::BadData, "{} holds no samples", path);
  return folder;
}

void reads_samples(Outputs& outputs, const DataOptions& from) {
  const std::string files = from.given || from.source ? "" : from.path;
  for (const std::string& path : files_of(files)) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      outputs.reads_folder(path, "the samples", [kind = from.kind](const std::string& name) {
        return may_be_sample(name, kind);
      });
    } else {
      outputs.reads(path, "the samples");
    }
  }
  std::error_code error;
  if (std::filesystem::is_directory(from.labels, error)) {
    outputs.reads_folder(from.labels, "the masks", has_image_extension);
  } else {
    outputs.reads(from.labels, "the labels");
  }
  outputs.reads(from.characters, "the characters");
}

}  // namespace quench::data
