// SPDX-License-Identifier: Apache-2.0
// Fuzzes the readers of samples, labels and settings. The first byte of an input picks the reader.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ini.h"
#include "data/idx.h"
#include "data/image_header.h"
#include "data/labels.h"
#include "data/npy.h"
#include "quench/data.h"
#include "quench/error.h"

namespace {

using Bytes = std::span<const std::byte>;

/// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : descriptor_(::memfd_create("fuzz", 0)) {
    if (descriptor_ < 0) std::abort();
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void npy(Bytes bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  (void)quench::data::parse_npy(*owner, owner);
}

void npz(Bytes bytes) {
  const MemoryFile file(bytes);
  for (const std::string& name : quench::data::npz_members(file.path())) {
    (void)quench::data::read_npz(file.path(), name);
  }
}

void idx(Bytes bytes) {
  const MemoryFile file(bytes);
  (void)quench::data::is_idx(file.path());
  (void)quench::data::read_idx(file.path());
}

void labels(Bytes bytes) {
  const MemoryFile file(bytes);
  (void)quench::data::read_labels(file.path());
}

void ini(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  (void)quench::IniFile::parse(text, "fuzz.ini");
}

void data_section(Bytes bytes) {
  const MemoryFile file(bytes);
  (void)quench::read_data_section(file.path());
}

void image(Bytes bytes) { (void)quench::data::check_image(bytes); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array kReaders = {npy, npz, idx, labels, ini, data_section, image};
  if (size == 0) return 0;
  // A copy of exactly this size, so that a read past its end is seen.
  const std::vector<std::uint8_t> copy(data + 1, data + size);
  try {
    kReaders[data[0] % kReaders.size()](std::as_bytes(std::span(copy)));
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
