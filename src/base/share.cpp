// SPDX-License-Identifier: Apache-2.0
// Trees over ranks: as many steps as the number of ranks has bits.
#include "base/share.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/format.h"

namespace quench {

namespace {

constexpr std::chrono::milliseconds kPause{20};

/// As `spread`, among ranks that may die: every piece has an owner, what it found is left with rank
/// 0, and a piece whose owner is lost goes to whoever asks for it first.
std::vector<Bytes> spread_among_living(Ranks& ranks, std::int64_t count,
                                       const std::function<Bytes(std::int64_t)>& body) {
  const std::int64_t queue = ranks.open_queue();
  const auto key = [&](const char* what, std::int64_t i) {
    return format("{}/{}/{}", what, queue, i);
  };
  const auto do_it = [&](std::int64_t i) { ranks.leave_note(key("piece", i), body(i)); };
  for (std::int64_t i = 0; i < count; ++i) {
    ranks.check();
    if (ranks.claim(key("owner", i), -1) == ranks.rank()) do_it(i);
  }
  std::vector<Bytes> results;
  while (static_cast<std::int64_t>(results.size()) < count) {
    const auto i = static_cast<std::int64_t>(results.size());
    if (auto found = ranks.note(key("piece", i))) {
      results.push_back(std::move(*found));
      continue;
    }
    ranks.check();
    const int owner = ranks.claim(key("owner", i), -1);
    if (!ranks.alive(owner) && ranks.claim(key("owner", i), owner) == ranks.rank()) do_it(i);
    std::this_thread::sleep_for(kPause);
  }
  return results;
}

/// As `broadcast`, among ranks that may die.
Bytes tell_living(Ranks& ranks, std::string_view what, Bytes bytes, int from) {
  const std::string key = format("told/{}", ranks.open_queue());
  if (ranks.rank() == from) {
    ranks.leave_note(key, bytes);
    return bytes;
  }
  while (true) {
    if (auto found = ranks.note(key)) return std::move(*found);
    ranks.check();
    if (!ranks.alive(from)) fail(ErrorKind::Io, "rank {} was lost before it told {}", from, what);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Ranks* sharers(const Context& context) {
  return context.ranks && !context.ranks->tensor_parallel() ? context.ranks.get() : nullptr;
}

Ranks* shards(const Context& context) {
  return context.ranks && context.ranks->tensor_parallel() ? context.ranks.get() : nullptr;
}

bool leads(const Context& context) { return !context.ranks || context.ranks->rank() == 0; }

Share share_of(std::int64_t count, std::int64_t unit, std::int64_t index, std::int64_t parts) {
  const std::int64_t groups = (count + unit - 1) / unit;
  const auto begin = [&](std::int64_t part) {
    // In two steps, so that no product outgrows its type.
    const std::int64_t group = groups / parts * part + groups % parts * part / parts;
    return std::min(count, group * unit);
  };
  return {.first = begin(index), .count = begin(index + 1) - begin(index)};
}

void join_up(Ranks& ranks, std::string_view what, const std::function<Bytes()>& encoded,
             const std::function<void(const Bytes&)>& add) {
  const int rank = ranks.rank();
  for (int step = 1; step < ranks.size(); step *= 2) {
    if (rank % (2 * step) != 0) {
      ranks.send(rank - step, encoded(), what);
      return;
    }
    if (rank + step < ranks.size()) add(ranks.receive(rank + step, what));
  }
}

Bytes broadcast(Ranks& ranks, std::string_view what, Bytes bytes, int from) {
  if (ranks.elastic()) return tell_living(ranks, what, std::move(bytes), from);
  const int size = ranks.size();
  const int place = (ranks.rank() - from + size) % size;
  const auto rank_at = [&](int there) { return (there + from) % size; };
  int step = 1;
  while (step < size) step *= 2;
  for (step /= 2; step >= 1; step /= 2) {
    if (place % (2 * step) == step) bytes = ranks.receive(rank_at(place - step), what);
    if (place % (2 * step) == 0 && place + step < size) {
      ranks.send(rank_at(place + step), bytes, what);
    }
  }
  return bytes;
}

std::vector<Bytes> gather(Ranks& ranks, std::string_view what, const Bytes& own) {
  Packer packer;
  packer.put(own);
  Bytes all = packer.take();
  join_up(
      ranks, what, [&] { return all; },
      [&](const Bytes& part) { all.insert(all.end(), part.begin(), part.end()); });
  all = broadcast(ranks, what, std::move(all));
  std::vector<Bytes> parts;
  for (Unpacker unpacker(all); !unpacker.at_end();) {
    const std::span<const std::byte> bytes = unpacker.get();
    parts.emplace_back(bytes.begin(), bytes.end());
  }
  return parts;
}

std::vector<Bytes> spread(Ranks& ranks, std::string_view what, std::int64_t count,
                          const std::function<Bytes(std::int64_t)>& body) {
  if (ranks.elastic()) return spread_among_living(ranks, count, body);
  Packer own;
  const std::int64_t queue = ranks.open_queue();
  for (std::int64_t i = ranks.take(queue); i < count; i = ranks.take(queue)) {
    own.put(i);
    own.put(body(i));
  }
  Bytes all = own.take();
  join_up(
      ranks, what, [&] { return all; },
      [&](const Bytes& part) { all.insert(all.end(), part.begin(), part.end()); });
  all = broadcast(ranks, what, std::move(all));
  std::vector<Bytes> results(static_cast<std::size_t>(count));
  for (Unpacker unpacker(all); !unpacker.at_end();) {
    const auto place = static_cast<std::size_t>(unpacker.number());
    const std::span<const std::byte> bytes = unpacker.get();
    results.at(place).assign(bytes.begin(), bytes.end());
  }
  return results;
}

void Packer::put(std::span<const std::byte> bytes) {
  const auto size = static_cast<std::uint64_t>(bytes.size());
  const auto head = std::as_bytes(std::span(&size, 1));
  bytes_.insert(bytes_.end(), head.begin(), head.end());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> Unpacker::get() {
  std::uint64_t size = 0;
  if (rest_.size() < sizeof(size)) fail(ErrorKind::Internal, "a message between ranks is cut off");
  copy(rest_.first(sizeof(size)), &size);
  rest_ = rest_.subspan(sizeof(size));
  if (rest_.size() < size) fail(ErrorKind::Internal, "a message between ranks is cut off");
  const auto bytes = rest_.first(static_cast<std::size_t>(size));
  rest_ = rest_.subspan(bytes.size());
  return bytes;
}

std::string Unpacker::text() {
  const auto bytes = get();
  std::string result(bytes.size(), '\0');
  copy(bytes, result.data());
  return result;
}

std::int64_t Unpacker::number() {
  const auto bytes = get();
  std::int64_t result = 0;
  if (bytes.size() != sizeof(result)) {
    fail(ErrorKind::Internal, "a message between ranks is not of this version of Quench");
  }
  copy(bytes, &result);
  return result;
}

void Unpacker::copy(std::span<const std::byte> from, void* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace quench
