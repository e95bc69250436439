// SPDX-License-Identifier: Apache-2.0
// Files: mapped for reading, written atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace quench {

/// A file mapped read-only. Weights point into it; the last of them unmaps it.
class MappedFile {
 public:
  /// Throws Error(Io) that names the file and the reason.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Tells the system that bytes of a MappedFile are not needed soon; they are read again if
/// touched. Does nothing for memory of any other kind.
void release_pages(std::span<const std::byte> bytes) noexcept;

/// Bytes of a regular file; throws Error(Io).
std::uint64_t file_size(const std::string& path);

/// A file that appears under its name only when `commit` is called; otherwise nothing is left.
class AtomicFile {
 public:
  /// Creates a temporary file beside `path`.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  const std::string& temporary_path() const noexcept { return temporary_; }
  void write(std::span<const std::byte> bytes);
  /// Flushes to disk and renames.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace quench
