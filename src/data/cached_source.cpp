// SPDX-License-Identifier: Apache-2.0
// Keeps samples up to a number of bytes.
#include "data/cached_source.h"

namespace quench {
namespace {

/// Enough for the samples that are read more than once of a network for photographs.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

std::size_t bytes_of(const Sample& sample) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : sample.inputs) bytes += tensor.num_bytes();
  return bytes;
}

}  // namespace

Sample CachedSource::read(std::int64_t index) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(index);
    if (found != kept_.end()) return found->second;
  }
  Sample sample = source_->read(index);
  const std::size_t bytes = bytes_of(sample);
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes <= kMostBytes && kept_.emplace(index, sample).second) bytes_ += bytes;
  return sample;
}

}  // namespace quench
