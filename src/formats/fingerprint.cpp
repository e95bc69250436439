// SPDX-License-Identifier: Apache-2.0
// A number that tells whether a model or data are still those of before.
#include "formats/fingerprint.h"

#include <cstring>

#include "base/format.h"

namespace quench {
namespace {

/// Multiplies and folds, so that every bit of a word reaches every bit of the state.
std::uint64_t mix(std::uint64_t state, std::uint64_t word) noexcept {
  state = (state ^ word) * 0xff51afd7ed558ccd;
  return state ^ (state >> 32);
}

}  // namespace

void Fingerprint::add(std::span<const std::byte> bytes) noexcept {
  state_ = mix(state_, bytes.size());
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    state_ = mix(state_, word);
    bytes = bytes.subspan(sizeof(word));
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  state_ = mix(state_, rest);
}

void Fingerprint::add(std::string_view text) noexcept {
  add(std::as_bytes(std::span(text.data(), text.size())));
}

void Fingerprint::add(std::int64_t number) noexcept {
  state_ = mix(state_, static_cast<std::uint64_t>(number));
}

void Fingerprint::add(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    add(name);
    for (const std::int64_t dim : tensor.shape()) add(dim);
    add(tensor.bytes());
  }
}

std::string Fingerprint::text() const { return format("{:016x}", state_); }

std::string fingerprint(const Model& model) {
  Fingerprint result;
  result.add(dump(model));
  for (const Value& value : model.graph.values()) {
    if (!value.constant) continue;
    result.add(value.name);
    const Tensor tensor = value.constant->held();
    result.add(tensor.bytes());
    tensor.drop();
  }
  return result.text();
}

}  // namespace quench
