// SPDX-License-Identifier: Apache-2.0
// Replaces a model and its data file so that they fit each other at every moment.
#include "formats/onnx/pair.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/leftovers.h"
#include "formats/onnx/file.h"

namespace quench::onnx {
namespace {

namespace fs = std::filesystem;

std::string data_name(const std::string& path, int number) {
  return number == 0 ? path + ".data" : format("{}.{}.data", path, number);
}

bool is_free(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::not_found;
}

/// Whether the file is one of those that the model at `path` names, or would name by now if the run
/// that wrote it had not been killed.
bool is_named(const std::string& file, const std::string& path,
              const std::set<std::string>& locations) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::regular) return false;
  for (const std::string& location : locations) {
    if (is_temporary_of(file, location)) return true;
    if (fs::equivalent(file, fs::path(path).parent_path() / location, error)) return true;
  }
  return false;
}

std::string first_name(const std::string& path, const std::set<std::string>& locations) {
  for (int i = 0;; ++i) {
    const std::string name = data_name(path, i);
    if (is_free(name) || is_named(name, path, locations)) return name;
  }
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  const int code = errno;
  fail(ErrorKind::Io, "cannot replace '{}': {}", to, std::strerror(code));
}

/// New data are not for more eyes than the model that was there.
void take_mode(const std::string& model, const std::string& data) {
  std::error_code error;
  const fs::file_status old = fs::status(model, error);
  if (old.type() == fs::file_type::regular) fs::permissions(data, old.permissions(), error);
}

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

std::string own_data_file(const std::string& path, const std::set<std::string>& locations) {
  const std::string name = first_name(path, locations);
  return is_free(name) ? "" : name;
}

std::string unshared_data_file(const std::string& path, const std::set<std::string>& locations) {
  const std::string own = own_data_file(path, locations);
  if (own.empty()) return own;
  std::error_code unread;
  std::error_code ignored;
  const fs::path folder = fs::path(own).parent_path();
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, unread)) {
    const std::string other = entry.path().string();
    if (entry.path().extension() != ".onnx" || fs::equivalent(other, path, ignored)) continue;
    if (is_named(own, other, data_locations(other))) return "";
  }
  return unread ? "" : own;
}

StagedPair::StagedPair(const std::string& path, const Write& write_data,
                       const WriteModel& write_model)
    : path_(path) {
  const std::set<std::string> locations = data_locations(path);
  own_ = own_data_file(path, locations);
  final_path_ = first_name(path, locations);
  data_.emplace(final_path_, locations);
  if (own_.empty()) take_mode(path, data_->temporary_path());
  write_data(*data_);
  second_.name = data_->link();
  if (second_.name.empty()) {
    final_path_ = first_name(path, {});
  } else {
    first_.emplace(path);
    write_model(*first_, name_of(data_->temporary_path()), data_->temporary_path());
  }
  last_.emplace(path);
  write_model(*last_, name_of(final_path_), data_->temporary_path());
}

StagedPair::SecondName::~SecondName() {
  if (!name.empty()) std::remove(name.c_str());
}

void StagedPair::finish() {
  data_->finish();
  if (first_) first_->finish();
  last_->finish();
  size_ = data_->size() + last_->size();
}

void StagedPair::step(int number) {
  if (!first_) return step_without_links(number);
  switch (number) {
    case 0:
      return first_->commit();
    case 1:
      rename_file(second_.name, final_path_);
      return second_.name.clear();
    case 2:
      return last_->commit();
    default:
      data_.reset();
      return remove_leftovers(final_path_, {});
  }
}

void StagedPair::step_without_links(int number) {
  if (number == 1) rename_file(data_->temporary_path(), final_path_);
  if (number == 2) last_->commit();
  if (number == 3 && !own_.empty()) std::remove(own_.c_str());
}

void StagedPair::commit() {
  finish();
  for (int i = 0; i < kSteps; ++i) step(i);
}

}  // namespace quench::onnx
