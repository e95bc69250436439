// SPDX-License-Identifier: Apache-2.0
// Reads, shuffles, augments and joins samples.
#include "qat/engine/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/format.h"
#include "exec/engine/bridge.h"

namespace quench::qat {
namespace {

constexpr double kLongest = 4.0 / 3;  ///< width by height of an image's part, or the reverse

/// From 0 to 1, with 53 of the random bits: distributions of the standard differ between libraries.
double fraction(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) / static_cast<double>(1ULL << 53U);
}

/// A random part of an image, at least `least` of its area, as large as the image was.
at::Tensor enlarged(const at::Tensor& image, double least, std::mt19937_64& random) {
  const double area = least + (1 - least) * fraction(random);
  const double shape = std::pow(kLongest, 2 * fraction(random) - 1);  // width by height
  const auto part = [&](std::int64_t size, double share) {
    const auto wanted = std::llround(static_cast<double>(size) * std::sqrt(share));
    const std::int64_t length = std::clamp<std::int64_t>(wanted, 1, size);
    const auto places = static_cast<double>(size - length + 1);
    return Share{.first = static_cast<std::int64_t>(places * fraction(random)), .count = length};
  };
  const Share rows = part(image.size(2), area / shape);
  const Share columns = part(image.size(3), area * shape);
  return at::upsample_bilinear2d(
      image.narrow(2, rows.first, rows.count).narrow(3, columns.first, columns.count),
      {image.size(2), image.size(3)}, /*align_corners=*/false);
}

/// Mirrors, enlarges and moves an image [1, C, H, W].
at::Tensor augmented(const at::Tensor& image, const TrainingOptions& options,
                     std::mt19937_64& random) {
  at::Tensor result = image;
  if (options.flip && (random() & 1U) != 0) result = at::flip(result, {3});
  if (options.zoom < 1) result = enlarged(result, options.zoom, random);
  if (options.crop > 0) {
    const auto range = static_cast<std::uint64_t>(2 * options.crop + 1);
    const auto down = static_cast<std::int64_t>(random() % range);
    const auto right = static_cast<std::int64_t>(random() % range);
    const std::vector<std::int64_t> pads(4, options.crop);
    // The edge is repeated: zeros are no colour of the image.
    result = at::replication_pad2d(result, pads)
                 .narrow(2, down, image.size(2))
                 .narrow(3, right, image.size(3));
  }
  return result;
}

bool is_image(const at::Tensor& tensor) {
  return tensor.dim() == 4 && tensor.is_floating_point() && tensor.size(2) > 1 &&
         tensor.size(3) > 1;
}

}  // namespace

Batches::Batches(const evaluation::Samples& samples, const TrainingOptions& options,
                 std::uint64_t seed)
    : samples_(samples),
      options_(options),
      seed_(seed),
      count_(samples.calibration().count),
      batch_(std::max(options.batch, samples.run_size())) {
  if (samples.run_size() > 1) batch_ = samples.run_size();  // the model fixes it
  if (count_ >= batch_) return;
  fail(ErrorKind::BadData,
       "there are {} samples to train with, but a batch has {}; give more, or --train-batch {}",
       count_, batch_, std::max<std::int64_t>(count_, 1));
}

TrainingBatch Batches::join(const std::vector<std::int64_t>& which, std::int64_t step, bool augment,
                            std::int64_t place) {
  std::map<std::string, std::vector<at::Tensor>> parts;
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const Sample sample = samples_.source().read(which[i]);
    std::mt19937_64 random(seed_ * 1000003 + static_cast<std::uint64_t>(step) * 4099 +
                           static_cast<std::uint64_t>(place) + i);
    for (const auto& [name, tensor] : sample.inputs) {
      at::Tensor value = exec::to_torch(tensor);
      if (augment && is_image(value)) value = augmented(value, options_, random);
      const auto& earlier = parts[name];
      if (!earlier.empty() && earlier.front().sizes() != value.sizes()) {
        fail(ErrorKind::BadData,
             "{}: samples of one batch must have one shape; take --train-batch 1", sample.name);
      }
      parts[name].push_back(std::move(value));
    }
    labels.push_back(sample.label);
  }
  TrainingBatch batch;
  for (auto& [name, list] : parts) {
    const at::Tensor joined = at::cat(list, 0).contiguous();
    batch.inputs[name] = exec::from_torch(joined);
    batch.feeds[name] = joined;
  }
  batch.labels = at::tensor(at::ArrayRef<std::int64_t>(labels), at::kLong);
  return batch;
}

TrainingBatch Batches::at_step(std::int64_t step, Share part) {
  const std::int64_t epoch = step / per_epoch();
  if (epoch != epoch_) {
    epoch_ = epoch;
    order_.resize(static_cast<std::size_t>(count_));
    std::iota(order_.begin(), order_.end(), samples_.calibration().first);
    std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(epoch) * 7919);
    // std::shuffle may differ between libraries; this does not.
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  }
  const auto first = order_.begin() + (step % per_epoch()) * batch_ + part.first;
  return join({first, first + part.count}, step, /*augment=*/true, part.first);
}

std::vector<std::int64_t> Batches::neighbours(std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> which(static_cast<std::size_t>(count));
  std::iota(which.begin(), which.end(), samples_.calibration().first + first);
  return which;
}

TrainingBatch Batches::plain(std::int64_t first, std::int64_t count) {
  return join(neighbours(first, count), 0, false);
}

std::int64_t Batches::variants(std::int64_t most) const noexcept {
  if (options_.crop > 0 || options_.zoom < 1) return most;
  return std::min<std::int64_t>(most, options_.flip ? 2 : 1);
}

TrainingBatch Batches::varied(std::int64_t copy, std::int64_t first, std::int64_t count) {
  // No step of a training has such a number.
  return join(neighbours(first, count), -1 - copy, true, first);
}

}  // namespace quench::qat
