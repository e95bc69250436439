// SPDX-License-Identifier: Apache-2.0
// POSIX files behind mapped reading and atomic writing.
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/format.h"

namespace quench {
namespace {

[[noreturn]] void fail_io(const char* verb, const std::string& path) {
  const int code = errno;
  fail(ErrorKind::Io, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_io("read", path);
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::Io, "cannot read '{}': it is not a regular file", path);
  }
  return status;
}

/// Closes a descriptor when the scope ends.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

/// The live mappings by their start: dropping pages of anything else would lose data.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> sizes;
};

Mappings& mappings() {
  static Mappings all;
  return all;
}

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) {
  Mappings& all = mappings();
  const std::lock_guard lock(all.mutex);
  auto after = all.sizes.upper_bound(begin);
  if (after == all.sizes.begin()) return false;
  --after;
  return end <= after->first + after->second;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail_io("open", path);
  const auto size = static_cast<std::size_t>(status_of(file.number, path).st_size);
  std::shared_ptr<MappedFile> result(new MappedFile);
  if (size == 0) return result;  // mmap refuses an empty length
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapped == MAP_FAILED) fail_io("map", path);
  result->data_ = static_cast<const std::byte*>(mapped);
  result->size_ = size;
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes[reinterpret_cast<std::uintptr_t>(mapped)] = size;
  return result;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes.erase(reinterpret_cast<std::uintptr_t>(data_));
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_pages(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin >= end || !is_mapped(begin, end)) return;
  // Advice only: a failure costs memory, never correctness.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page borders are computed as numbers.
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::uint64_t file_size(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail_io("open", path);
  return static_cast<std::uint64_t>(status_of(file.number, path).st_size);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int code = errno;
    fail(ErrorKind::Io, "cannot write '{}': {}", path_, std::strerror(code));
  }
  // mkostemp makes private files; give this one the mode an ordinary file would get.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(descriptor_, 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 30;  // Linux writes at most 2 GB at a time
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_io("write", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io("replace", path_);
  temporary_.clear();
}

}  // namespace quench
