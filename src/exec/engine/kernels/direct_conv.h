// SPDX-License-Identifier: Apache-2.0
// Convolutions of floats line by line: of few channels, which are read where they lie, and
// transposed ones. Only for what is left of 8-bit models: float models, with which ranges are
// collected and choices made by small margins, gain little, and keep giving the same files.
#pragma once

#include "exec/engine/kernels/conv.h"
#include "exec/engine/kernels/row_product.h"
#include "exec/engine/onednn/fusion.h"

namespace quench::exec {

/// Weights by tap, in whole registers of columns, and what becomes of the sums.
struct DirectWeights {
  /// `weight` is [taps, columns]; `bias` is undefined or has a number for each column.
  DirectWeights(const Fusion& fusion, const at::Tensor& weight, const at::Tensor& bias);

  const float* row(std::int64_t tap) const { return rows.data() + tap * std::ssize(start); }
  /// The part of a product that lies here.
  RowProduct product() const;

  std::int64_t columns = 0;
  std::vector<float> rows;
  std::vector<float> start;
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();
};

class DirectConv {
 public:
  /// `weight` is [O, I, H, W]. Nothing where oneDNN does better.
  static std::optional<DirectConv> make(const ConvAttributes& attributes, const Fusion& fusion,
                                        const at::Tensor& weight, const at::Tensor& bias);

  /// `src` is [N, C, H, W] in any strides; `dst` lies in NHWC order.
  void operator()(const at::Tensor& src, const at::Tensor& dst) const;

 private:
  struct Rows;

  DirectConv(Window window, Ints shape, DirectWeights weights)
      : window_(std::move(window)), shape_(std::move(shape)), weights_(std::move(weights)) {}

  Window window_;
  Ints shape_;  ///< of the weights
  DirectWeights weights_;
};

/// Transposed convolution whose kernel is as large as its stride: no two taps meet, and every row
/// of the kernel makes a line of its own.
class DirectConvTranspose {
 public:
  /// `weight` is [I, O, H, W]. Nothing where oneDNN does better.
  static std::optional<DirectConvTranspose> make(const Fusion& fusion, const at::Tensor& weight,
                                                 const at::Tensor& bias);

  /// `src` is [N, I, H, W] in NHWC order, as the result.
  at::Tensor operator()(const at::Tensor& src) const;

 private:
  DirectConvTranspose(Fusion fusion, Ints shape, std::vector<DirectWeights> rows)
      : fusion_(std::move(fusion)), shape_(std::move(shape)), rows_(std::move(rows)) {}

  Fusion fusion_;  ///< what is left to do when the rows are there
  Ints shape_;
  std::vector<DirectWeights> rows_;  ///< of the kernel
};

}  // namespace quench::exec
