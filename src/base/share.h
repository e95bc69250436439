// SPDX-License-Identifier: Apache-2.0
// How ranks part their work, and put together what each of them found.
#pragma once

#include <functional>
#include <vector>

#include "quench/ranks.h"

namespace quench {

using Bytes = std::vector<std::byte>;

/// The ranks that share samples and layers; null: none do.
Ranks* sharers(const Context& context);
/// The ranks that each have a part of the model; null: this process has it whole.
Ranks* shards(const Context& context);
/// Whether what all ranks have alike is this process's to write.
bool leads(const Context& context);

/// Neighbours among pieces of work.
struct Share {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// What part `index` of `parts` has of `count` pieces. Parts are neighbours in their order, as like
/// as whole groups of `unit` allow.
Share share_of(std::int64_t count, std::int64_t unit, std::int64_t index, std::int64_t parts);

/// Joins what the ranks have, in their order, along a tree: after it rank 0 has all. `encoded` says
/// what this rank has by then; `add` gets what those behind it have.
void join_up(Ranks& ranks, std::string_view what, const std::function<Bytes()>& encoded,
             const std::function<void(const Bytes&)>& add);
/// What rank `from` has, on every rank; along a tree.
Bytes broadcast(Ranks& ranks, std::string_view what, Bytes bytes, int from = 0);

/// What each rank has, in their order, on every rank.
std::vector<Bytes> gather(Ranks& ranks, std::string_view what, const Bytes& own);

/// Runs `body(i)` for every i below `count` on whichever rank is free, and gives all that was
/// returned, in the order of i, on every rank. `body` must not talk to ranks itself.
std::vector<Bytes> spread(Ranks& ranks, std::string_view what, std::int64_t count,
                          const std::function<Bytes(std::int64_t)>& body);

/// Texts and numbers one behind the other, between ranks of one version of Quench.
class Packer {
 public:
  void put(std::span<const std::byte> bytes);
  void put(std::string_view text) { put(std::as_bytes(std::span(text.data(), text.size()))); }
  void put(std::int64_t number) { put(std::as_bytes(std::span(&number, 1))); }
  template <typename T>
  void put_all(const std::vector<T>& values) {
    put(std::as_bytes(std::span(values)));
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads what a Packer wrote. Throws Error(Internal) where it is something else.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}
  bool at_end() const noexcept { return rest_.empty(); }
  std::span<const std::byte> get();
  std::string text();
  std::int64_t number();
  template <typename T>
  std::vector<T> all() {
    const std::span<const std::byte> bytes = get();
    std::vector<T> values(bytes.size() / sizeof(T));
    copy(bytes.first(values.size() * sizeof(T)), values.data());
    return values;
  }

 private:
  static void copy(std::span<const std::byte> from, void* to);
  std::span<const std::byte> rest_;
};

}  // namespace quench
