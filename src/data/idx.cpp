// SPDX-License-Identifier: Apache-2.0
// Reads IDX files through zlib, which passes plain files through.
#include "data/idx.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/format.h"
#include "data/npy.h"

namespace quench::data {
namespace {

// Deflate cannot do better than this.
constexpr std::uint64_t kMaxRatio = 1100;

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using Gzip = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGzip>;

Gzip open_gzip(const std::string& path) {
  ReadFile plain(path);
  Gzip file(gzdopen(plain.descriptor(), "rb"));
  if (!file) fail(ErrorKind::Io, "{}: cannot be opened", path);
  (void)plain.release();  // zlib closes it
  return file;
}

void read_exactly(gzFile file, std::span<std::byte> bytes) {
  constexpr std::size_t kStep = std::size_t{1} << 24;
  while (!bytes.empty()) {
    const std::size_t step = std::min(bytes.size(), kStep);
    const int got = gzread(file, bytes.data(), static_cast<unsigned>(step));
    if (got <= 0) fail(ErrorKind::BadData, "the IDX file is cut off or damaged");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

DType element_type(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return DType::UInt8;
    case 0x09:
      return DType::Int8;
    case 0x0B:
      return DType::Int16;
    case 0x0C:
      return DType::Int32;
    case 0x0D:
      return DType::Float32;
    case 0x0E:
      return DType::Float64;
    default:
      return DType::Undefined;
  }
}

bool is_magic(std::span<const std::byte, 4> magic) {
  return magic[0] == std::byte{0} && magic[1] == std::byte{0} &&
         element_type(magic[2]) != DType::Undefined && magic[3] >= std::byte{1} &&
         magic[3] <= std::byte{8};
}

Tensor parse_idx(gzFile file, std::uint64_t size_on_disk) {
  std::array<std::byte, 4> magic{};
  read_exactly(file, magic);
  if (!is_magic(magic)) fail(ErrorKind::BadData, "not an IDX file");
  Shape shape;
  for (int i = 0; i < std::to_integer<int>(magic[3]); ++i) {
    std::array<std::byte, 4> dim{};
    read_exactly(file, dim);
    std::int64_t value = 0;
    for (const std::byte byte : dim) value = value * 256 + std::to_integer<int>(byte);
    shape.push_back(value);
  }
  const DType dtype = element_type(magic[2]);
  const auto count = num_elements(shape);
  const auto bytes = count ? num_bytes(dtype, *count) : std::nullopt;
  const std::uint64_t ratio = gzdirect(file) != 0 ? 1 : kMaxRatio;
  if (!bytes || *bytes / ratio > size_on_disk) {
    fail(ErrorKind::BadData, "{} elements cannot come out of {} bytes", to_string(shape),
         size_on_disk);
  }
  Tensor tensor = Tensor::zeros(dtype, shape);
  read_exactly(file, tensor.mutable_bytes());
  swap_bytes(tensor.mutable_bytes(), static_cast<std::size_t>(info(dtype).bits) / 8);
  return tensor;
}

}  // namespace

bool is_idx(const std::string& path) {
  const Gzip file = open_gzip(path);
  std::array<std::byte, 4> magic{};
  return gzread(file.get(), magic.data(), 4) == 4 && is_magic(magic);
}

Tensor read_idx(const std::string& path) {
  const std::uint64_t size = file_size(path);
  const Gzip file = open_gzip(path);
  try {
    return parse_idx(file.get(), size);
  } catch (Error& error) {
    error.in(path);
    throw;
  }
}

std::string find_idx_labels(const std::string& images_path) {
  const std::filesystem::path path(images_path);
  std::string name = path.filename().string();
  const std::size_t at = name.find("-images");
  if (at == std::string::npos) return "";
  name = name.substr(0, at) + "-labels-idx1-ubyte";
  for (const char* suffix : {"", ".gz"}) {
    const std::filesystem::path candidate = path.parent_path() / (name + suffix);
    std::error_code code;
    if (std::filesystem::is_regular_file(candidate, code)) return candidate.string();
  }
  return "";
}

}  // namespace quench::data
