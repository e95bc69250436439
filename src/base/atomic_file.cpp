// SPDX-License-Identifier: Apache-2.0
// Files written aside and renamed, and what killed runs have left of them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/file.h"
#include "base/format.h"
#include "base/leftovers.h"
#include "quench/files.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".quench-";
constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kNumLetters = 6;
constexpr std::size_t kMaxName = 255;

[[noreturn]] void fail_io(const char* verb, const std::string& path) {
  const int code = errno;
  fail(ErrorKind::Io, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

/// The bytes to be written lie in a mapped file that has been cut off.
[[noreturn]] void fail_lost(const void* address) {
  const char* path = mapped_file_at(address);
  fail(ErrorKind::Io,
       "cannot read '{}': it has become shorter; run again when nothing writes to it",
       path == nullptr ? "the bytes to be written" : path);
}

/// Where a path leads, its last part included; that file need not be there.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  fs::path place(path);
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(place, error))) return place.string();
    const fs::path next = fs::read_symlink(place, error);
    if (error) fail(ErrorKind::Io, "cannot write '{}': {}", path, error.message());
    place = next.is_absolute() ? next : place.parent_path() / next;
  }
  fail(ErrorKind::Io, "cannot write '{}': its links lead nowhere", path);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// What stands at a path that is to be written, or nothing; it must be a regular file.
bool find_old(const std::string& path, struct stat& old) {
  if (::lstat(path.c_str(), &old) != 0) return false;
  if (S_ISREG(old.st_mode)) return true;
  fail(ErrorKind::Io, "cannot write '{}': it is {}; name a file", path, kind_of(old.st_mode));
}

/// How the names of a file's temporary files begin.
std::string stem_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, kMaxName - kMark.size() - kNumLetters) + std::string(kMark);
}

std::string fresh_name(const std::string& path) {
  std::random_device random;
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string name = stem_of(path);
  for (std::size_t i = 0; i < kNumLetters; ++i) name += kLetters[letter(random)];
  return (fs::path(path).parent_path() / name).string();
}

/// Removes a temporary file whose owner is dead: the lock goes with the process.
void remove_unlocked(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  ::close(file);
}

}  // namespace

bool is_temporary_of(const std::string& path, const std::string& name) {
  const std::string stem = stem_of(path);
  return name.size() == stem.size() + kNumLetters && name.starts_with(stem) &&
         name.find_first_not_of(kLetters, stem.size()) == std::string::npos;
}

void remove_leftovers(const std::string& path, const std::set<std::string>& keep) {
  const fs::path parent = fs::path(path).parent_path();
  std::error_code error;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_temporary_of(path, name) && !keep.contains(name)) {
      remove_unlocked((parent / name).string());
    }
  }
}

AtomicFile::AtomicFile(const std::string& path, const std::set<std::string>& keep)
    : path_(target_of(path)) {
  struct stat old {};
  const bool replaces = find_old(path_, old);
  remove_leftovers(path_, keep);
  open_temporary(replaces ? old.st_mode & 0777U : 0666U);
  if (!replaces) return;
  // A stranger's file stays the stranger's where the system lets us; the mode is kept in any case.
  (void)!::fchown(descriptor_, old.st_uid, old.st_gid);
  (void)::fchmod(descriptor_, old.st_mode & 07777U);
}

void AtomicFile::open_temporary(unsigned mode) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    temporary_ = fresh_name(path_);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) break;
    // Between these two lines another process may take the file for one that is left over.
    const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat now {};
    if (!taken && ::fstat(descriptor_, &now) == 0 && now.st_nlink > 0) return;
    ::close(descriptor_);
    descriptor_ = -1;
  }
  temporary_.clear();
  fail_io("write", path_);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  unlock();
}

void AtomicFile::unlock() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (lock_ != nullptr) ::munmap(lock_, 1);
  descriptor_ = -1;
  lock_ = nullptr;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 30;  // Linux writes at most 2 GB at a time
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EFAULT) fail_lost(bytes.data());
    if (written < 0) fail_io("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::finish() {
  if (descriptor_ < 0) return;
  struct stat status {};
  if (::fsync(descriptor_) != 0 || ::fstat(descriptor_, &status) != 0) fail_io("write", path_);
  size_ = static_cast<std::uint64_t>(status.st_size);
  // A job may have more files than a process may have descriptors. The lock belongs to the open
  // file, which a mapping keeps open as well.
  void* lock = ::mmap(nullptr, 1, PROT_NONE, MAP_SHARED, descriptor_, 0);
  if (lock == MAP_FAILED) return;
  ::close(descriptor_);
  descriptor_ = -1;
  lock_ = lock;
}

void AtomicFile::commit() {
  finish();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io("replace", path_);
  temporary_.clear();
  unlock();
}

std::string AtomicFile::link() const {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fresh_name(path_);
    if (::link(temporary_.c_str(), name.c_str()) == 0) return name;
    if (errno != EEXIST) break;
  }
  return {};
}

}  // namespace quench
