// SPDX-License-Identifier: Apache-2.0
// Puts samples together, after looking whether they fit.
#include "data/join.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/parallel.h"

namespace quench {
namespace {

bool alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.rank() == b.rank() && a.rank() > 0 &&
         std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
}

std::string inputs_text(const Sample& sample) {
  std::string text;
  for (const auto& [name, tensor] : sample.inputs) {
    text += format("{}'{}' {}", text.empty() ? "" : ", ", name, to_string(ValueType::of(tensor)));
  }
  return text;
}

Tensor joined(const std::vector<Sample>& samples, const std::string& input, int threads) {
  const Tensor& first = samples.front().inputs.at(input);
  Shape shape = first.shape();
  shape.at(0) = 0;
  for (const Sample& sample : samples) shape[0] += sample.inputs.at(input).shape()[0];
  Tensor result = Tensor::zeros(first.dtype(), std::move(shape));
  const std::span<std::byte> bytes = result.mutable_bytes();
  std::vector<std::size_t> places = {0};
  for (const Sample& sample : samples) {
    places.push_back(places.back() + sample.inputs.at(input).bytes().size());
  }
  // Most of the time goes into fresh pages, which several threads get as many times faster.
  constexpr std::size_t kMuch = std::size_t{16} << 20U;
  parallel_for(static_cast<std::int64_t>(samples.size()), bytes.size() < kMuch ? 1 : threads,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                      ++i) {
                   const auto src = samples[i].inputs.at(input).bytes();
                   if (!src.empty()) std::memcpy(&bytes[places[i]], src.data(), src.size());
                 }
               });
  return result;
}

}  // namespace

bool alike(const Sample& a, const Sample& b) {
  return std::ranges::equal(a.inputs, b.inputs, [](const auto& one, const auto& other) {
    return one.first == other.first && alike(one.second, other.second);
  });
}

Batch join(std::vector<Sample> samples, int threads) {
  Batch batch;
  if (samples.empty()) return batch;
  const Sample& first = samples.front();
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (alike(first, samples[i])) continue;
    fail(ErrorKind::BadData,
         "{} has {}, but {} has {}; samples that run together need one shape: give all the same, "
         "or a model with an open batch dimension",
         samples[i].name, inputs_text(samples[i]), first.name, inputs_text(first));
  }
  for (const auto& [input, tensor] : first.inputs) {
    batch.inputs[input] = samples.size() == 1 ? tensor : joined(samples, input, threads);
  }
  for (Sample& sample : samples) {
    batch.labels.push_back(sample.label);
    batch.names.push_back(std::move(sample.name));
  }
  return batch;
}

}  // namespace quench
