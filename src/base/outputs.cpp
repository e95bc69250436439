// SPDX-License-Identifier: Apache-2.0
// The files of a job: none may be read and written, or written twice.
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "quench/files.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

/// A path, and the file that it leads to.
struct Place {
  std::string path;
  std::string what;
  fs::path canonical;
  struct stat status {};
  bool exists = false;
};

Place place_of(const std::string& path, const std::string& what) {
  Place place{.path = path, .what = what, .canonical = {}};
  place.exists = ::stat(path.c_str(), &place.status) == 0;
  std::error_code error;
  place.canonical = fs::weakly_canonical(fs::absolute(path, error), error);
  return place;
}

bool same_file(const Place& a, const Place& b) {
  const bool same_node = a.exists && b.exists && a.status.st_dev == b.status.st_dev &&
                         a.status.st_ino == b.status.st_ino;
  return same_node || (!a.canonical.empty() && a.canonical == b.canonical);
}

struct ReadFolder {
  Place place;
  std::function<bool(const std::string&)> is_read;
};

bool holds(const ReadFolder& folder, const Place& file) {
  if (!file.exists) return false;
  const fs::path& root = folder.place.canonical;
  const auto [end, unused] =
      std::mismatch(root.begin(), root.end(), file.canonical.begin(), file.canonical.end());
  return end == root.end() && folder.is_read(file.canonical.filename().string());
}

[[noreturn]] void fail_read(const Place& written, const Place& read) {
  fail(ErrorKind::Usage,
       "{} cannot be written to '{}': this run reads {} from there; name another file",
       written.what, written.path, read.what);
}

}  // namespace

struct Outputs::State {
  std::vector<Place> read;
  std::vector<ReadFolder> folders;
  std::vector<Place> written;
  std::vector<std::unique_ptr<Staged>> staged;
  std::vector<std::string> removed;
  bool keeps = true;

  void check_not_read(const Place& place) const {
    for (const Place& each : read) {
      if (same_file(each, place)) fail_read(place, each);
    }
    for (const ReadFolder& folder : folders) {
      if (holds(folder, place)) fail_read(place, folder.place);
    }
  }
};

Outputs::Outputs() : state_(std::make_unique<State>()) {}
Outputs::~Outputs() = default;

void Outputs::reads(const std::string& path, const std::string& what) {
  const Place place = place_of(path, what);
  if (!place.exists) return;
  for (const Place& each : state_->written) {
    if (same_file(each, place)) fail_read(each, place);
  }
  state_->read.push_back(place);
}

void Outputs::reads_folder(const std::string& path, const std::string& what,
                           std::function<bool(const std::string&)> is_read) {
  const ReadFolder folder{.place = place_of(path, what), .is_read = std::move(is_read)};
  if (!folder.place.exists) return;
  for (const Place& each : state_->written) {
    if (holds(folder, each)) fail_read(each, folder.place);
  }
  state_->folders.push_back(folder);
}

void Outputs::may_write(const std::string& path, const std::string& what) {
  const Place place = place_of(path, what);
  state_->check_not_read(place);
  for (const Place& each : state_->written) {
    if (!same_file(each, place)) continue;
    if (each.what == what) return;
    fail(ErrorKind::Usage,
         "{} cannot be written to '{}': this run writes {} there; name another file", what, path,
         each.what);
  }
  state_->written.push_back(place);
}

void Outputs::writes(const std::string& path, const std::string& what) {
  may_write(path, what);
  if (!state_->keeps) return;
  const AtomicFile probe(path);  // a path that cannot be written: say so before the work
}

std::uint64_t Outputs::add(std::unique_ptr<Staged> file) {
  state_->check_not_read(place_of(file->path(), "a result"));
  file->finish();
  state_->staged.push_back(std::move(file));
  return state_->staged.back()->size();
}

void Outputs::keep_nothing() noexcept { state_->keeps = false; }

void Outputs::removes(const std::string& path) { state_->removed.push_back(path); }

void Outputs::commit() {
  if (!state_->keeps) return;
  for (const std::string& path : state_->removed) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  for (const auto& file : state_->staged) file->commit();
  *state_ = {};
}

void write_text(const std::string& path, std::string_view text, Outputs& outputs) {
  auto file = std::make_unique<AtomicFile>(path);
  file->write(text);
  outputs.add(std::move(file));
}

}  // namespace quench
