// SPDX-License-Identifier: Apache-2.0
// NumPy's array files and archives of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "quench/tensor.h"

namespace quench::data {

/// What stands before the elements of an .npy file.
struct NpyHeader {
  DType dtype = DType::Undefined;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0;
};
/// The most that a header takes, with what stands before it.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{1} << 16;
/// Reads a header from the first bytes of a file of `file_size`, and checks that the elements it
/// promises are there. Throws Error(BadData) or, for element types that tensors do not have,
/// Error(Unsupported).
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::uint64_t file_size);

/// The array in the bytes of an .npy file; it points into them where that is possible.
Tensor parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);

/// Names of the arrays in an .npz archive, without ".npy", in the archive's order.
std::vector<std::string> npz_members(const std::string& path);
Tensor read_npz(const std::string& path, const std::string& member);

/// Writes an array aside, for `path`.
std::unique_ptr<Staged> stage_npy(const Tensor& tensor, const std::string& path);

/// Reverses the bytes of every element.
void swap_bytes(std::span<std::byte> bytes, std::size_t element_size);

}  // namespace quench::data
