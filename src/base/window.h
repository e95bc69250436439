// SPDX-License-Identifier: Apache-2.0
// Files of which only what is in use is in memory, or takes address space.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "quench/byte_source.h"

namespace quench {

/// A file that is larger than memory may be: its parts are mapped while they are held.
class WindowedFile : public std::enable_shared_from_this<WindowedFile> {
 public:
  /// Throws Error(Io) that names the file and the reason.
  static std::shared_ptr<const WindowedFile> open(const std::string& path);
  /// A file that has no name any more; `name` is for messages.
  static std::shared_ptr<const WindowedFile> of(int descriptor, std::string name);
  ~WindowedFile();
  WindowedFile(const WindowedFile&) = delete;
  WindowedFile& operator=(const WindowedFile&) = delete;

  std::uint64_t size() const noexcept { return size_; }
  /// Bytes [offset, offset + size), which must be in the file. They lie on a multiple of
  /// `alignment` when they are held, copied where that takes a copy.
  std::shared_ptr<const ByteSource> part(std::uint64_t offset, std::size_t size,
                                         std::size_t alignment) const;
  /// Such bytes, now.
  std::shared_ptr<const std::byte> hold(std::uint64_t offset, std::size_t size,
                                        std::size_t alignment) const;
  /// A copy of them, where a mapping would be more than they are worth.
  std::shared_ptr<const ByteSource> copy(std::uint64_t offset, std::size_t size) const;

 private:
  enum class Stays { Open, IfFew };
  WindowedFile(ReadFile file, Stays stays);
  ReadFile reopened() const;

  std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t device_ = 0;
  std::uint64_t number_ = 0;
  /// Absent where a model has more files than a process may have open.
  std::optional<ReadFile> file_;
};

/// What a job has made and will want again, on disk meanwhile, in a file without a name. Its room
/// is free when the last who reads from it is gone.
class Spool {
 public:
  /// `folder` is where the file lies, and where there is room for what it takes.
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  std::shared_ptr<const ByteSource> add(std::span<const std::byte> bytes);

 private:
  void open();

  std::string folder_;
  int descriptor_ = -1;
  std::uint64_t end_ = 0;
  std::shared_ptr<const WindowedFile> file_;
};

}  // namespace quench
