// SPDX-License-Identifier: Apache-2.0
// The kinds of columns.
#pragma once

#include <memory>
#include <string>

#include "data/column.h"
#include "data/folder.h"
#include "quench/given_samples.h"

namespace quench::data {

/// Image files, decoded by the images module.
std::unique_ptr<Column> make_image_column(const InputSpec& spec, Folder folder,
                                          const ImageOptions& options, const Context& context);
/// Raw tensors: each file holds the bytes of the input, or of one row of a fixed batch.
std::unique_ptr<Column> make_bin_column(const InputSpec& spec, Folder folder, BinLayout layout);
/// .npy files of one sample each.
std::unique_ptr<Column> make_npy_column(const InputSpec& spec, Folder folder);
/// Records of 3073 bytes: a label, then planes of 32x32 red, green and blue values.
std::unique_ptr<Column> make_cifar_column(const InputSpec& spec, const Folder& folder,
                                          const ImageOptions& options);
/// The rows of an .npy file, read when they are asked for.
std::unique_ptr<Column> make_npy_row_column(const InputSpec& spec, const std::string& path);
/// The rows of a tensor that came from `file`.
std::unique_ptr<Column> make_row_column(const InputSpec& spec, Tensor rows,
                                        const std::string& file);
/// The same for IDX, whose 8-bit pixels are normalised.
std::unique_ptr<Column> make_idx_column(const InputSpec& spec, const std::string& path,
                                        const ImageOptions& options);

/// A column for each input of what the caller's code gave; the first has the labels.
std::vector<std::unique_ptr<Column>> make_given_columns(const std::vector<InputSpec>& specs,
                                                        const GivenSamples& given);

/// Whether a .bin file of `size` bytes is CIFAR and not a raw tensor.
bool is_cifar_file(const InputSpec& spec, std::uint64_t size);

/// How a tensor is cut into samples of an input.
struct RowCut {
  std::int64_t rows = 1;
  Shape sample;  ///< with the batch dimension of 1, if the input is batched
};
/// Throws Error(BadData) when `shape` does not fit the input.
RowCut cut_rows(const InputSpec& spec, const Shape& shape);
/// Row `index` of a tensor, as the input wants it.
Tensor row_of(const InputSpec& spec, const Tensor& tensor, const RowCut& cut, std::int64_t index);

}  // namespace quench::data
