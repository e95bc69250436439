// SPDX-License-Identifier: Apache-2.0
// POSIX files behind reading and mapping.
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "quench/files.h"

namespace quench {
namespace {

[[noreturn]] void fail_io(const char* verb, const std::string& path) {
  const int code = errno;
  fail(ErrorKind::Io, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

/// A live mapping. They form a list that only grows, so that a signal handler can walk it without a
/// lock; `begin` is 0 where an entry is free.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0};
  std::size_t size = 0;
  std::string path;
  Mapping* next = nullptr;
};

struct Mappings {
  std::mutex mutex;  ///< of those who change the list
  std::atomic<Mapping*> first{nullptr};
};

Mappings& mappings() {
  static Mappings& all = *new Mappings;  // a signal may come after everything else has gone
  return all;
}

void note_mapping(std::uintptr_t begin, std::size_t size, const std::string& path) {
  Mappings& all = mappings();
  const std::lock_guard lock(all.mutex);
  Mapping* entry = all.first;
  while (entry != nullptr && entry->begin != 0) entry = entry->next;
  const bool is_new = entry == nullptr;
  if (is_new) entry = new Mapping;
  entry->size = size;
  entry->path = path;
  entry->begin = begin;
  if (!is_new) return;
  entry->next = all.first;
  all.first = entry;
}

/// The mapping that holds [begin, end), or null.
const Mapping* find_mapping(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (const Mapping* entry = mappings().first; entry != nullptr; entry = entry->next) {
    const std::uintptr_t start = entry->begin;
    if (start != 0 && begin >= start && end <= start + entry->size) return entry;
  }
  return nullptr;
}

void forget_mapping(std::uintptr_t begin) noexcept {
  const std::lock_guard lock(mappings().mutex);
  for (Mapping* entry = mappings().first; entry != nullptr; entry = entry->next) {
    if (entry->begin == begin) entry->begin = 0;
  }
}

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const std::lock_guard lock(mappings().mutex);
  return find_mapping(begin, end) != nullptr;
}

}  // namespace

ReadFile::ReadFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO must not wait for somebody to write to it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_io("open", path_);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const int code = errno;
  ::close(descriptor_);
  errno = code;
  if (!known) fail_io("read", path_);
  fail(ErrorKind::Io, "cannot read '{}': it is not a regular file", path_);
}

ReadFile::ReadFile(int descriptor, std::string path) noexcept
    : path_(std::move(path)), descriptor_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(other.release()), size_(other.size_) {}

int ReadFile::release() noexcept { return std::exchange(descriptor_, -1); }

void ReadFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path_);
    if (got == 0) {
      fail(ErrorKind::Io,
           "cannot read '{}': it had {} bytes and has become shorter; run again when nothing "
           "writes to it",
           path_, size_);
    }
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::vector<std::byte> read_bytes(const std::string& path) {
  const ReadFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

std::string read_text(const std::string& path) {
  const ReadFile file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint64_t file_size(const std::string& path) { return ReadFile(path).size(); }

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const ReadFile file(path);
  const auto size = static_cast<std::size_t>(file.size());
  std::shared_ptr<MappedFile> result(new MappedFile);
  if (size == 0) return result;  // mmap refuses an empty length
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED) fail_io("map", path);
  result->data_ = static_cast<const std::byte*>(mapped);
  result->size_ = size;
  note_mapping(reinterpret_cast<std::uintptr_t>(mapped), size, path);
  return result;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(reinterpret_cast<std::uintptr_t>(data_));
  ::munmap(const_cast<std::byte*>(data_), size_);
}

std::shared_ptr<const std::byte> map_part(const ReadFile& file, std::uint64_t offset,
                                          std::size_t size) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  const auto skipped = static_cast<std::size_t>(offset - begin);
  const std::size_t length = skipped + size;
  void* mapped =
      ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.descriptor(), static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) fail_io("map", file.path());
  note_mapping(reinterpret_cast<std::uintptr_t>(mapped), length, file.path());
  const std::shared_ptr<void> owner(mapped, [length](void* at) {
    forget_mapping(reinterpret_cast<std::uintptr_t>(at));
    ::munmap(at, length);
  });
  return {owner, static_cast<const std::byte*>(mapped) + skipped};
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

const char* mapped_file_at(const void* address) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const Mapping* entry = find_mapping(place, place + 1);
  return entry == nullptr ? nullptr : entry->path.c_str();
}

}  // namespace quench
