// SPDX-License-Identifier: Apache-2.0
// Packs the weights of a depthwise convolution, and brings its rows together.
#include "exec/engine/int8/depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace quench::exec {
namespace {

constexpr std::int64_t kBlock = 64;

/// The channel-wise position of the number that lies at `lane` of register `q`.
std::int64_t place(std::int64_t q, std::int64_t lane) { return lane / 4 * 16 + 4 * q + lane % 4; }

/// Sums and quotients fit where the inner loop keeps them.
bool numbers_fit(const DepthwiseShape& shape, const DepthwiseNumbers& numbers) {
  constexpr double kMaxSteps = 1 << 30;
  constexpr double kMaxSum = std::numeric_limits<std::int32_t>::max();
  const auto taps = static_cast<double>(shape.kernel[0] * shape.kernel[1]);
  for (std::size_t c = 0; c < numbers.sums.size(); ++c) {
    const double most = taps * 255 * 128 + std::abs(static_cast<double>(numbers.sums[c]));
    const double steps = most * static_cast<double>(numbers.scales[c]);
    const auto shift = static_cast<double>(numbers.shifts[c]);
    if (!(most < kMaxSum) || !(steps + std::abs(shift) < kMaxSteps)) return false;
  }
  return true;
}

}  // namespace

/// The rows of one image that a pair needs, padded and split by stride; each is made once.
class DepthwiseRows {
 public:
  DepthwiseRows(const Depthwise& conv, const DepthwiseImage& image) : conv_(conv), image_(image) {
    const DepthwiseShape& shape = conv.shape_;
    const std::int64_t padded = image.width + image.pads[1] + image.pads[3];
    columns_ = (padded + shape.strides[1] - 1) / shape.strides[1];
    // Rows begin where registers do; the last block of a row may read past its end.
    phase_ = (columns_ * shape.channels + kBlock - 1) / kBlock * kBlock;
    stride_ = shape.strides[1] * phase_ + kBlock;
    count_ = (shape.kernel[0] - 1) * shape.dilations[0] + 1 + shape.strides[0];
    flips_ = conv.flip_ == 0 ? 0 : 0x8080808080808080U;
    held_.assign(static_cast<std::size_t>(count_), -1);
    // Kept for the next image: fresh memory costs more than the copies.
    thread_local std::vector<std::uint8_t> memory;
    const auto size = static_cast<std::size_t>((count_ + 1) * stride_ + kBlock);
    if (memory.size() < size) memory.resize(size);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    bytes_ = memory.data() + (kBlock - address % kBlock) % kBlock;
    std::memset(bytes_ + count_ * stride_, conv.zero_, static_cast<std::size_t>(stride_));
  }

  const std::uint8_t* row(std::int64_t row) {
    if (row < 0 || row >= image_.height) return bytes_ + count_ * stride_;
    const std::int64_t slot = row % count_;
    std::uint8_t* bytes = bytes_ + slot * stride_;
    std::int64_t& held = held_[static_cast<std::size_t>(slot)];
    if (held != row) fill(bytes, row);
    held = row;
    return bytes;
  }
  /// Where in a row the tap of a column begins to read.
  std::int64_t offset(std::int64_t column) const {
    const std::int64_t stride = conv_.shape_.strides[1];
    return column % stride * phase_ + column / stride * conv_.shape_.channels;
  }

 private:
  void fill(std::uint8_t* to, std::int64_t row) const {
    const std::int64_t channels = conv_.shape_.channels;
    const std::int64_t stride = conv_.shape_.strides[1];
    const std::uint8_t* from = image_.src + row * image_.width * channels;
    const std::int64_t left = image_.pads[1];
    const auto pixel = [&](std::int64_t column) {
      return to + column % stride * phase_ + column / stride * channels;
    };
    if (stride == 1) {
      copy(from, to + left * channels, image_.width * channels);
    } else {
      for (std::int64_t phase = 0; phase < stride; ++phase) {
        // The first pixel of the image in this phase.
        const std::int64_t first = ((phase - left) % stride + stride) % stride;
        if (first >= image_.width) continue;
        const std::int64_t count = (image_.width - first + stride - 1) / stride;
        avx512::gather_pixels({from + first * channels, count, channels, stride * channels},
                              conv_.flip_, pixel(first + left));
      }
    }
    for (std::int64_t x = 0; x < left; ++x) pad(pixel(x));
    for (std::int64_t x = left + image_.width; x < columns_ * stride; ++x) pad(pixel(x));
  }

  void pad(std::uint8_t* pixel) const {
    std::memset(pixel, conv_.zero_, static_cast<std::size_t>(conv_.shape_.channels));
  }

  void copy(const std::uint8_t* from, std::uint8_t* to, std::int64_t size) const {
    if (flips_ == 0) {
      std::memcpy(to, from, static_cast<std::size_t>(size));
      return;
    }
    constexpr std::int64_t kWord = sizeof(flips_);
    const std::int64_t whole = size - size % kWord;
    for (std::int64_t i = 0; i < whole; i += kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + i, kWord);
      word ^= flips_;
      std::memcpy(to + i, &word, kWord);
    }
    for (std::int64_t i = whole; i < size; ++i) {
      to[i] = static_cast<std::uint8_t>(from[i] ^ conv_.flip_);
    }
  }

  const Depthwise& conv_;
  DepthwiseImage image_;
  std::int64_t columns_ = 0;  ///< of a phase
  std::int64_t phase_ = 0;    ///< bytes from one phase of a row to the next
  std::int64_t stride_ = 0;   ///< bytes from row to row
  std::int64_t count_ = 0;
  std::uint64_t flips_ = 0;
  std::vector<std::int64_t> held_;  ///< which row each slot holds
  std::uint8_t* bytes_ = nullptr;   ///< the slots, then a row of padding
};

std::optional<Depthwise> Depthwise::make(const DepthwiseShape& shape,
                                         const DepthwiseNumbers& numbers) {
  constexpr std::int64_t kMaxTaps = 256;
  constexpr std::int64_t kMaxPacked = 1 << 20;
  if (!avx512::has_depthwise() || shape.kernel[0] * shape.kernel[1] > kMaxTaps ||
      !numbers_fit(shape, numbers)) {
    return std::nullopt;
  }
  Depthwise result(shape, numbers);
  if (result.sets_ * result.set_weights_ > kMaxPacked) return std::nullopt;
  result.pack(numbers);
  return result;
}

Depthwise::Depthwise(const DepthwiseShape& shape, const DepthwiseNumbers& numbers)
    : shape_(shape), flip_(numbers.flip), zero_(numbers.zero), store_(numbers.store) {
  choose_items();
  sets_ = std::lcm(shape.channels, kBlock) / kBlock;
  shifted_ = std::ranges::any_of(numbers.shifts, [](float each) { return each != 0; });
}

/// All rows that the pair reads, column by column; four items make a group.
void Depthwise::choose_items() {
  std::vector<std::int64_t> rows;
  for (std::int64_t pair = 0; pair < 2; ++pair) {
    for (std::int64_t y = 0; y < shape_.kernel[0]; ++y) {
      const std::int64_t row = pair * shape_.strides[0] + y * shape_.dilations[0];
      if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
    }
  }
  std::ranges::sort(rows);
  // Whole groups of four rows of one column first; what is left of the columns is put together.
  std::vector<Item> left;
  const std::size_t whole = rows.size() / 4 * 4;
  for (std::int64_t x = 0; x < shape_.kernel[1]; ++x) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (i < whole ? items_ : left).push_back({.row = rows[i], .column = x * shape_.dilations[1]});
    }
  }
  items_.insert(items_.end(), left.begin(), left.end());
  while (items_.size() % 4 != 0) items_.push_back({.row = -1});
  for (std::size_t g = 0; g < items_.size(); g += 4) {
    std::uint8_t uses = 0;
    for (std::size_t i = g; i < g + 4; ++i) {
      for (std::int64_t pair = 0; pair < 2; ++pair) {
        const std::int64_t away = items_[i].row - pair * shape_.strides[0];
        const bool tap = items_[i].row >= 0 && away >= 0 && away % shape_.dilations[0] == 0 &&
                         away / shape_.dilations[0] < shape_.kernel[0];
        if (tap) uses = static_cast<std::uint8_t>(uses | (1 << pair));
      }
    }
    uses_.push_back(uses);
    set_weights_ += 4 * kBlock * ((uses & 1) + (uses >> 1));
  }
}

std::int8_t Depthwise::weight(const DepthwiseNumbers& numbers, const Item& item, std::int64_t row,
                              std::int64_t channel) const {
  const std::int64_t away = item.row - row * shape_.strides[0];
  if (item.row < 0 || away < 0 || away % shape_.dilations[0] != 0) return 0;
  const std::int64_t y = away / shape_.dilations[0];
  if (y >= shape_.kernel[0]) return 0;
  const std::int64_t x = item.column / shape_.dilations[1];
  return numbers.weights[(channel * shape_.kernel[0] + y) * shape_.kernel[1] + x];
}

void Depthwise::pack(const DepthwiseNumbers& numbers) {
  const auto size = static_cast<std::size_t>(sets_ * kBlock);
  weights_.reserve(static_cast<std::size_t>(sets_ * set_weights_));
  sums_.reserve(size);
  scales_.reserve(size);
  shifts_.reserve(size);
  for (std::int64_t set = 0; set < sets_; ++set) pack_set(numbers, set);
}

void Depthwise::pack_set(const DepthwiseNumbers& numbers, std::int64_t set) {
  const auto channel = [&](std::int64_t i) {
    return (set * kBlock + place(i / 16, i % 16)) % shape_.channels;
  };
  for (std::size_t g = 0; g < uses_.size(); ++g) {
    for (std::int64_t row = 0; row < 2; ++row) {
      if ((uses_[g] >> row & 1) == 0) continue;
      for (std::int64_t i = 0; i < 4 * kBlock; ++i) {
        const Item& item = items_[4 * g + static_cast<std::size_t>(i % 4)];
        weights_.push_back(weight(numbers, item, row, channel(i / 4)));
      }
    }
  }
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const auto c = static_cast<std::size_t>(channel(i));
    sums_.push_back(numbers.sums[c]);
    scales_.push_back(numbers.scales[c]);
    shifts_.push_back(numbers.shifts[c]);
  }
}

void Depthwise::run(const DepthwiseImage& image, std::int64_t begin, std::int64_t end) const {
  DepthwiseRows rows(*this, image);
  std::vector<const std::uint8_t*> items(items_.size());
  std::vector<std::int64_t> offsets;
  std::int64_t last = 0;
  for (const Item& item : items_) {
    offsets.push_back(rows.offset(item.column));
    last = std::max(last, item.row);
  }
  std::vector<const std::uint8_t*> lines(static_cast<std::size_t>(last) + 1);
  const std::int64_t line = image.dst_width * shape_.channels;
  const avx512::DepthwisePair pair{.items = items.data(),
                                   .uses = uses_.data(),
                                   .groups = std::ssize(uses_),
                                   .weights = weights_.data(),
                                   .sums = sums_.data(),
                                   .scales = scales_.data(),
                                   .shifts = shifted_ ? shifts_.data() : nullptr,
                                   .sets = sets_,
                                   .set_weights = set_weights_,
                                   .store = store_};
  for (std::int64_t y = 2 * begin; y < std::min(2 * end, image.dst_height); y += 2) {
    const std::int64_t top = y * shape_.strides[0] - image.pads[0];
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i] = rows.row(top + static_cast<std::int64_t>(i));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::int64_t row = std::max<std::int64_t>(items_[i].row, 0);
      items[i] = lines[static_cast<std::size_t>(row)] + offsets[i];
    }
    std::uint8_t* first = image.dst + y * line;
    avx512::depthwise_pair(pair, first, y + 1 < image.dst_height ? first + line : nullptr, line);
  }
}

}  // namespace quench::exec
