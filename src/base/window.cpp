// SPDX-License-Identifier: Apache-2.0
// Parts of files, mapped for as long as they are held, and files to put such parts into.
#include "base/window.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/format.h"

namespace quench {
namespace {

constexpr std::uint64_t kAlignment = 64;
/// Some models have a file for each weight. A process may have about a thousand open.
constexpr int kMostOpen = 256;
std::atomic<int> num_open{0};

[[noreturn]] void fail_spool(const std::string& folder) {
  const int code = errno;
  fail(ErrorKind::Io, "cannot write to the folder '{}': {}", folder, std::strerror(code));
}

std::shared_ptr<const std::byte> read_part(const ReadFile& file, std::uint64_t offset,
                                           std::size_t size) {
  constexpr std::align_val_t kAligned{kAlignment};
  auto* copy = static_cast<std::byte*>(::operator new(size, kAligned));
  const std::shared_ptr<std::byte> owner(copy,
                                         [](std::byte* p) { ::operator delete(p, kAligned); });
  file.read(offset, {copy, size});
  return owner;
}

class FilePart final : public ByteSource {
 public:
  FilePart(std::shared_ptr<const WindowedFile> file, std::uint64_t offset, std::size_t size,
           std::size_t alignment)
      : file_(std::move(file)), offset_(offset), size_(size), alignment_(alignment) {}
  std::shared_ptr<const std::byte> hold() const override {
    return file_->hold(offset_, size_, alignment_);
  }

 private:
  std::shared_ptr<const WindowedFile> file_;
  std::uint64_t offset_;
  std::size_t size_;
  std::size_t alignment_;
};

class Copy final : public ByteSource {
 public:
  explicit Copy(std::shared_ptr<const std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::shared_ptr<const std::byte> hold() const override { return bytes_; }

 private:
  std::shared_ptr<const std::byte> bytes_;
};

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& folder) {
  constexpr std::size_t kChunk = std::size_t{1} << 26;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_spool(folder);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

WindowedFile::WindowedFile(ReadFile file, Stays stays) : path_(file.path()), size_(file.size()) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) == 0) {
    device_ = status.st_dev;
    number_ = status.st_ino;
  }
  if (num_open.fetch_add(1) < kMostOpen || stays == Stays::Open) {
    file_.emplace(std::move(file));
  } else {
    --num_open;
  }
}

WindowedFile::~WindowedFile() {
  if (file_) --num_open;
}

std::shared_ptr<const WindowedFile> WindowedFile::open(const std::string& path) {
  return std::shared_ptr<const WindowedFile>(new WindowedFile(ReadFile(path), Stays::IfFew));
}

std::shared_ptr<const WindowedFile> WindowedFile::of(int descriptor, std::string name) {
  return std::shared_ptr<const WindowedFile>(
      new WindowedFile(ReadFile(descriptor, std::move(name)), Stays::Open));
}

ReadFile WindowedFile::reopened() const {
  ReadFile file(path_);
  struct stat status {};
  const bool same = ::fstat(file.descriptor(), &status) == 0 && status.st_dev == device_ &&
                    status.st_ino == number_ && file.size() == size_;
  if (!same) {
    fail(ErrorKind::Io,
         "cannot read '{}': it is another file than before; run again when nothing writes to it",
         path_);
  }
  return file;
}

std::shared_ptr<const std::byte> WindowedFile::hold(std::uint64_t offset, std::size_t size,
                                                    std::size_t alignment) const {
  const auto bring = [&](const ReadFile& file) {
    return offset % alignment == 0 ? map_part(file, offset, size) : read_part(file, offset, size);
  };
  return file_ ? bring(*file_) : bring(reopened());
}

std::shared_ptr<const ByteSource> WindowedFile::part(std::uint64_t offset, std::size_t size,
                                                     std::size_t alignment) const {
  return std::make_shared<FilePart>(shared_from_this(), offset, size, alignment);
}

std::shared_ptr<const ByteSource> WindowedFile::copy(std::uint64_t offset, std::size_t size) const {
  return std::make_shared<Copy>(file_ ? read_part(*file_, offset, size)
                                      : read_part(reopened(), offset, size));
}

Spool::~Spool() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Spool::open() {
  std::string name = folder_ + "/.quench-XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail_spool(folder_);
  ::unlink(name.c_str());
  const int reading = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (reading < 0) fail_spool(folder_);
  file_ = WindowedFile::of(reading, folder_ + "/(temporary)");
}

std::shared_ptr<const ByteSource> Spool::add(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) open();
  constexpr std::array<std::byte, kAlignment> kPadding{};
  const std::uint64_t offset = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  write_all(descriptor_, std::span(kPadding).first(static_cast<std::size_t>(offset - end_)),
            folder_);
  write_all(descriptor_, bytes, folder_);
  end_ = offset + bytes.size();
  return file_->part(offset, bytes.size(), kAlignment);
}

}  // namespace quench
