// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes. A row of NHWC memory is one long vector: with the row padded and
// split by stride, every tap is the same vector read from another place, whatever the channels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/cpu.h"
#include "exec/engine/int8/loops.h"

namespace quench::exec {

/// Sizes and steps of the two axes of a depthwise convolution.
struct DepthwiseShape {
  std::int64_t channels = 1;
  std::int64_t kernel[2] = {1, 1};
  std::int64_t strides[2] = {1, 1};
  std::int64_t dilations[2] = {1, 1};
};

/// The numbers of its channels.
struct DepthwiseNumbers {
  const std::int8_t* weights = nullptr;  ///< [channels][height][width]
  std::vector<std::int32_t> sums;        ///< what each channel's sum starts with
  std::vector<float> scales;             ///< of the sum over that of the result
  std::vector<float> shifts;             ///< to add, over the scale of the result
  std::uint8_t flip = 0;                 ///< of the source's bytes
  std::uint8_t zero = 0;                 ///< the source's flipped zero point, which pads
  ByteStore store;
};

/// One image and its result, both [height, width, channels].
struct DepthwiseImage {
  const std::uint8_t* src = nullptr;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t pads[4] = {0, 0, 0, 0};
  std::uint8_t* dst = nullptr;
  std::int64_t dst_height = 0;
  std::int64_t dst_width = 0;
};

/// Weights packed for two rows of the result at a time.
class Depthwise {
 public:
  /// Nothing where this processor or these numbers have no exact fast form.
  static std::optional<Depthwise> make(const DepthwiseShape& shape,
                                       const DepthwiseNumbers& numbers);

  /// Pairs of rows of the result, from `begin` to `end`.
  void run(const DepthwiseImage& image, std::int64_t begin, std::int64_t end) const;

 private:
  friend class DepthwiseRows;
  /// A source of a group: a row of the image, counted from the pair's first, and a column.
  struct Item {
    std::int64_t row = 0;
    std::int64_t column = 0;
  };

  Depthwise(const DepthwiseShape& shape, const DepthwiseNumbers& numbers);
  void choose_items();
  void pack(const DepthwiseNumbers& numbers);
  void pack_set(const DepthwiseNumbers& numbers, std::int64_t set);
  std::int8_t weight(const DepthwiseNumbers& numbers, const Item& item, std::int64_t row,
                     std::int64_t channel) const;

  DepthwiseShape shape_;
  std::vector<Item> items_;  ///< four for each group
  std::vector<std::uint8_t>
      uses_;               ///< by group: bit 0 for the pair's first row, bit 1 for its second
  std::int64_t sets_ = 1;  ///< after so many blocks of 64 bytes the channels come again
  std::vector<std::int8_t> weights_;
  std::vector<std::int32_t> sums_;
  std::vector<float> scales_;
  std::vector<float> shifts_;
  std::int64_t set_weights_ = 0;  ///< bytes a set
  bool shifted_ = false;
  std::uint8_t flip_ = 0;
  std::uint8_t zero_ = 0;
  ByteStore store_;
};

namespace avx512 {

/// What `depthwise_pair` reads, one row of blocks after the other.
struct DepthwisePair {
  const std::uint8_t* const* items;
  const std::uint8_t* uses;
  std::int64_t groups;
  const std::int8_t* weights;
  const std::int32_t* sums;
  const float* scales;
  const float* shifts;  ///< null: nothing to add
  std::int64_t sets;
  std::int64_t set_weights;
  ByteStore store;
};

/// Pixels of a row, `step` bytes from each other.
struct PixelLine {
  const std::uint8_t* src;
  std::int64_t count;
  std::int64_t channels;
  std::int64_t step;
};

#if defined(QUENCH_X86)
/// Whether this processor has what the functions below need.
bool has_depthwise();
/// Copies pixels to lie side by side; up to 63 bytes behind them are overwritten.
void gather_pixels(const PixelLine& line, std::uint8_t flip, std::uint8_t* to);
/// Two rows of `size` bytes; the second may be null. The sources have 64 bytes more than that.
void depthwise_pair(const DepthwisePair& pair, std::uint8_t* first, std::uint8_t* second,
                    std::int64_t size);
#else
inline bool has_depthwise() { return false; }
inline void gather_pixels(const PixelLine&, std::uint8_t, std::uint8_t*) {}
inline void depthwise_pair(const DepthwisePair&, std::uint8_t*, std::uint8_t*, std::int64_t) {}
#endif

}  // namespace avx512
}  // namespace quench::exec
