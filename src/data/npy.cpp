// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npy arrays.
#include "data/npy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "quench/data.h"

namespace quench {
namespace data {
namespace {

std::size_t element_size(DType dtype) { return static_cast<std::size_t>(info(dtype).bits) / 8; }

// Column-major to row-major: walks the destination in order and strides through the source.
Tensor to_row_major(const Tensor& src) {
  const Shape& shape = src.shape();
  Tensor dst = Tensor::zeros(src.dtype(), shape);
  if (src.size() == 0) return dst;
  const std::size_t size = element_size(src.dtype());
  std::vector<std::size_t> strides;
  std::size_t stride = size;
  for (const std::int64_t dim : shape) {
    strides.push_back(stride);
    stride *= static_cast<std::size_t>(dim);
  }
  std::byte* out = dst.mutable_bytes().data();
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t offset = 0;
  for (std::int64_t i = 0; i < src.size(); ++i) {
    std::memcpy(out, src.bytes().data() + offset, size);
    out += size;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return dst;
}

std::string npy_header(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dim : tensor.shape()) shape += format("{}, ", dim);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  std::string text = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                            info(tensor.dtype()).numpy, shape);
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kAlign = 64;
  const std::size_t used = kPrefix + text.size() + 1;
  text.append((kAlign - used % kAlign) % kAlign, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFFU);
  header += static_cast<char>(text.size() >> 8U);
  return header + text;
}

}  // namespace

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
}

Tensor parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  const NpyHeader header = parse_npy_header(bytes, bytes.size());
  const auto wanted = num_bytes(header.dtype, *num_elements(header.shape));
  const auto elements = bytes.subspan(header.data_offset, *wanted);
  const std::size_t size = element_size(header.dtype);
  const bool aligned = reinterpret_cast<std::uintptr_t>(elements.data()) % size == 0;
  Tensor tensor;
  if (aligned && !header.big_endian) {
    tensor = Tensor::view(header.dtype, header.shape, elements, owner);
  } else {
    tensor = Tensor::zeros(header.dtype, header.shape);
    const std::span<std::byte> copy = tensor.mutable_bytes();
    std::copy(elements.begin(), elements.end(), copy.begin());
    if (header.big_endian) swap_bytes(copy, size);
  }
  return header.fortran_order && header.shape.size() > 1 ? to_row_major(tensor) : tensor;
}

std::unique_ptr<Staged> stage_npy(const Tensor& tensor, const std::string& path) {
  if (info(tensor.dtype()).numpy.empty() || info(tensor.dtype()).bits % 8 != 0) {
    fail(ErrorKind::Unsupported, "{}: NumPy has no type for {}; convert the tensor first", path,
         name_of(tensor.dtype()));
  }
  auto file = std::make_unique<AtomicFile>(path);
  file->write(npy_header(tensor));
  file->write(tensor.bytes());
  return file;
}

}  // namespace data

Tensor read_npy(const std::string& path) {
  const std::size_t npz = path.rfind(".npz:");
  if (npz != std::string::npos)
    return data::read_npz(path.substr(0, npz + 4), path.substr(npz + 5));
  if (path.ends_with(".npz")) {
    const std::vector<std::string> members = data::npz_members(path);
    if (members.size() == 1) return data::read_npz(path, members.front());
    fail(ErrorKind::BadData, "{} holds {} arrays ({}); name one as {}:NAME", path, members.size(),
         fmt::join(members, ", "), path);
  }
  const auto bytes = std::make_shared<const std::vector<std::byte>>(read_bytes(path));
  try {
    return data::parse_npy(*bytes, bytes);
  } catch (Error& error) {
    error.in(path);
    throw;
  }
}

void write_npy(const Tensor& tensor, const std::string& path) {
  data::stage_npy(tensor, path)->commit();
}

}  // namespace quench
