// SPDX-License-Identifier: Apache-2.0
// Outputs from rank to rank: metrics are sums, counts and sorted lists, and each needs its order.
#include "evaluate/shared_scores.h"

#include "base/format.h"
#include "base/share.h"

namespace quench {
namespace {

constexpr std::string_view kWhat = "outputs";

void put(Packer& packer, const Tensor& tensor) {
  if (tensor.dtype() == DType::String) {
    fail(ErrorKind::Unsupported, "outputs of texts cannot be scored with --distributed");
  }
  packer.put(static_cast<std::int64_t>(tensor.dtype()));
  packer.put_all(tensor.shape());
  packer.put(tensor.bytes());
}

Tensor take(Unpacker& from) {
  const auto dtype = static_cast<DType>(from.number());
  const Shape shape = from.all<std::int64_t>();
  const std::span<const std::byte> bytes = from.get();
  Tensor tensor = Tensor::zeros(dtype, shape);
  if (tensor.bytes().size() != bytes.size()) {
    fail(ErrorKind::Internal, "an output of another rank has {} bytes, expected {}", bytes.size(),
         tensor.bytes().size());
  }
  std::ranges::copy(bytes, tensor.mutable_bytes().begin());
  return tensor;
}

}  // namespace

void SharedScores::add(std::size_t card, const Tensor& actual, const Tensor& expected) {
  if (sharers(context_) != nullptr) {
    kept_.push_back({.card = card, .actual = actual, .expected = expected});
  } else {
    cards_[card]->add(actual, expected);
  }
}

std::int64_t SharedScores::join(std::int64_t samples) {
  if (sharers(context_) == nullptr) return samples;
  Ranks& ranks = *context_.ranks;
  std::int64_t all = 0;
  for (int from = 0; from < ranks.size(); ++from) {
    Packer packer;
    if (from == ranks.rank()) {
      packer.put(samples);
      for (const Entry& entry : kept_) {
        packer.put(static_cast<std::int64_t>(entry.card));
        put(packer, entry.actual);
        put(packer, entry.expected);
      }
      kept_.clear();
    }
    const Bytes bytes = broadcast(ranks, kWhat, packer.take(), from);
    Unpacker unpacker(bytes);
    all += unpacker.number();
    while (!unpacker.at_end()) {
      const auto card = static_cast<std::size_t>(unpacker.number());
      const Tensor actual = take(unpacker);
      cards_.at(card)->add(actual, take(unpacker));
    }
  }
  return all;
}

}  // namespace quench
