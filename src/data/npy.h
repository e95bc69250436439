// SPDX-License-Identifier: Apache-2.0
// NumPy's array files and archives of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
/// Reads a header and checks that the elements it promises are there. Throws Error(BadData) or,
/// for element types that tensors do not have, Error(Unsupported).
NpyHeader parse_npy_header(std::span<const std::byte> bytes);

/// The array in the bytes of an .npy file; it points into them where that is possible.
Tensor parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);

/// Names of the arrays in an .npz archive, without ".npy", in the archive's order.
std::vector<std::string> npz_members(const std::string& path);
Tensor read_npz(const std::string& path, const std::string& member);

/// Reverses the bytes of every element.
void swap_bytes(std::span<std::byte> bytes, std::size_t element_size);

}  // namespace quench::data
