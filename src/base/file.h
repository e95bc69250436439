// SPDX-License-Identifier: Apache-2.0
// Files: read or mapped, regular ones only; written atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// A regular file that is open for reading. Every file is opened here: a FIFO, which another
/// program may never write to, or a device is refused at once.
class ReadFile {
 public:
  /// Throws Error(Io) that names the file and the reason.
  explicit ReadFile(std::string path);
  /// Takes over a descriptor of a regular file; `path` is its name in messages.
  ReadFile(int descriptor, std::string path) noexcept;
  ~ReadFile();
  ReadFile(ReadFile&& other) noexcept;
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  ReadFile& operator=(ReadFile&&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// When it was opened.
  std::uint64_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return descriptor_; }
  /// Gives the descriptor away, to a library that closes it.
  int release() noexcept;
  /// Fills `bytes` from `offset` on; throws Error(Io) where the file has become shorter.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A whole file in memory. For everything but weights: a mapped file that another program cuts off
/// ends the process, one that is read is an error.
std::vector<std::byte> read_bytes(const std::string& path);
std::string read_text(const std::string& path);
/// Bytes of a regular file; throws Error(Io).
std::uint64_t file_size(const std::string& path);

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

/// A part of a file, mapped read-only; `offset` need not be that of a page. What it returns unmaps
/// it. Throws Error(Io).
std::shared_ptr<const std::byte> map_part(const ReadFile& file, std::uint64_t offset,
                                          std::size_t size);

/// Tells the system that bytes of a mapped file are not needed soon; they are read again if
/// touched. Does nothing for memory of any other kind.
void release_pages(std::span<const std::byte> bytes) noexcept;

/// Removes the temporary files that killed runs have left of `path`, except those named in `keep`.
void remove_leftovers(const std::string& path, const std::set<std::string>& keep);

/// What was written and waits for its name.
class Staged {
 public:
  Staged() = default;
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  virtual ~Staged() = default;
  virtual const std::string& path() const noexcept = 0;
  /// Brings everything to disk: what can fail for lack of room fails here.
  virtual void finish() = 0;
  /// Bytes; known when it is finished.
  virtual std::uint64_t size() const noexcept = 0;
  /// Gives it its name.
  virtual void commit() = 0;
};

/// A file that appears under its name only when `commit` is called; otherwise nothing is left.
/// What stands there keeps its mode, and a link keeps leading there; only regular files are
/// replaced.
///
/// Until then the bytes lie beside it as `NAME.quench-XXXXXX`, which is locked as long as its owner
/// lives. A run that was killed cannot remove its own, so whoever writes NAME next removes those
/// that nobody has locked, except those named in `keep`.
class AtomicFile final : public Staged {
 public:
  explicit AtomicFile(const std::string& path, const std::set<std::string>& keep = {});
  ~AtomicFile() override;

  const std::string& path() const noexcept override { return path_; }
  const std::string& temporary_path() const noexcept { return temporary_; }
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void finish() override;
  std::uint64_t size() const noexcept override { return size_; }
  /// Flushes to disk and renames.
  void commit() override;
  /// A second name for the file, to be renamed or removed by the caller; empty where the file
  /// system has no links.
  std::string link() const;

 private:
  void open_temporary(unsigned mode);
  void unlock() noexcept;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  void* lock_ = nullptr;  ///< a mapping that holds the lock when the descriptor is closed
};

/// Makes the folder and those above it; throws Error(Io) that names it, also where nothing can be
/// written to it.
void make_folder(const std::string& path);
/// A text file that appears whole or not at all.
void write_text(const std::string& path, std::string_view text);
/// Names as they may stand on a line: control characters become spaces.
std::string on_one_line(std::string_view name);

}  // namespace quench
