// SPDX-License-Identifier: Apache-2.0
// Work in parts: nothing is lost, nothing done twice.
#include "base/share.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/ahead.h"

namespace quench {
namespace {

TEST(Share, PartsAreNeighboursAndWhole) {
  for (const std::int64_t count : {0, 1, 7, 16, 1000}) {
    for (const std::int64_t unit : {1, 4, 32}) {
      for (const std::int64_t parts : {1, 2, 3, 64}) {
        std::int64_t next = 0;
        for (std::int64_t i = 0; i < parts; ++i) {
          const Share share = share_of(count, unit, i, parts);
          EXPECT_EQ(share.first, next);
          EXPECT_TRUE(share.first % unit == 0 || share.first == count);
          EXPECT_LE(share.count, ((count + unit - 1) / unit / parts + 1) * unit);
          next += share.count;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(Share, LargeNumbersDoNotOverflow) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  const Share last = share_of(kMany, 1, 999, 1000);
  EXPECT_EQ(last.first + last.count, kMany);
}

TEST(Packer, GivesBackWhatItGot) {
  Packer packer;
  packer.put("text");
  packer.put(std::int64_t{-5});
  packer.put_all(std::vector<double>{1.5, 2.5});
  packer.put(std::string_view());
  const Bytes bytes = packer.take();
  Unpacker unpacker(bytes);
  EXPECT_EQ(unpacker.text(), "text");
  EXPECT_EQ(unpacker.number(), -5);
  EXPECT_EQ(unpacker.all<double>(), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(unpacker.text(), "");
  EXPECT_TRUE(unpacker.at_end());
  EXPECT_THROW(Unpacker(std::span(bytes).first(bytes.size() - 1).first(10)).text(), Error);
}

/// Ranks that are threads.
struct Hub {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Bytes>> waiting;
  std::map<std::int64_t, std::int64_t> queues;
  bool elastic = false;
  std::map<std::string, Bytes> notes;
  std::map<std::string, int> owners;
  std::set<int> dead;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Hub& hub, int rank, int size) : hub_(hub), rank_(rank), size_(size) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  void send(int to, std::span<const std::byte> bytes, std::string_view) override {
    const std::lock_guard lock(hub_.mutex);
    hub_.waiting[{rank_, to}].emplace_back(bytes.begin(), bytes.end());
    hub_.changed.notify_all();
  }
  Bytes receive(int from, std::string_view) override {
    std::unique_lock lock(hub_.mutex);
    auto& queue = hub_.waiting[{from, rank_}];
    hub_.changed.wait(lock, [&] { return !queue.empty(); });
    Bytes bytes = std::move(queue.front());
    queue.pop_front();
    return bytes;
  }
  std::int64_t open_queue() override { return queues_++; }
  std::int64_t take(std::int64_t queue) override {
    const std::lock_guard lock(hub_.mutex);
    return hub_.queues[queue]++;
  }
  bool elastic() const noexcept override { return hub_.elastic; }
  void leave_note(const std::string& key, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(hub_.mutex);
    hub_.notes[key] = Bytes(bytes.begin(), bytes.end());
  }
  std::optional<Bytes> note(const std::string& key) override {
    const std::lock_guard lock(hub_.mutex);
    const auto found = hub_.notes.find(key);
    return found == hub_.notes.end() ? std::nullopt : std::optional(found->second);
  }
  int claim(const std::string& key, int from) override {
    const std::lock_guard lock(hub_.mutex);
    const auto [owner, is_new] = hub_.owners.try_emplace(key, rank_);
    if (!is_new && from >= 0 && owner->second == from) owner->second = rank_;
    return owner->second;
  }
  bool alive(int rank) override {
    const std::lock_guard lock(hub_.mutex);
    return !hub_.dead.contains(rank);
  }
  void agree(std::string_view, std::string_view) override {}
  void check() override {}
  bool fail(ErrorKind, std::string_view) noexcept override { return true; }
  void leave() override {}

 private:
  Hub& hub_;
  int rank_;
  int size_;
  std::int64_t queues_ = 0;
};

void on_each_rank(int size, const std::function<void(Ranks&)>& body) {
  Hub hub;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(hub, rank, size);
      body(ranks);
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST(Ranks, JoinInTheirOrder) {
  for (const int size : {1, 2, 3, 4, 5, 8, 13}) {
    on_each_rank(size, [&](Ranks& ranks) {
      std::string own = std::to_string(ranks.rank()) + " ";
      std::string expected;
      for (int i = 0; i < size; ++i) expected += std::to_string(i) + " ";
      const auto encoded = [&] {
        Packer packer;
        packer.put(own);
        return packer.take();
      };
      join_up(ranks, "test", encoded, [&](const Bytes& part) { own += Unpacker(part).text(); });
      if (ranks.rank() == 0) {
        EXPECT_EQ(own, expected);
      }
      for (int from = 0; from < size; ++from) {
        Packer packer;
        if (ranks.rank() == from) packer.put(std::string_view("from " + std::to_string(from)));
        const Bytes got = broadcast(ranks, "test", packer.take(), from);
        EXPECT_EQ(Unpacker(got).text(), "from " + std::to_string(from));
      }
    });
  }
}

TEST(Ranks, GatherWhatEachHas) {
  for (const int size : {1, 2, 3, 5}) {
    on_each_rank(size, [&](Ranks& ranks) {
      const Bytes own(static_cast<std::size_t>(ranks.rank()), std::byte{7});  // rank 0 has nothing
      const std::vector<Bytes> all = gather(ranks, "test", own);
      ASSERT_EQ(static_cast<int>(all.size()), size);
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], Bytes(i, std::byte{7}));
    });
  }
}

TEST(Ahead, GivesItemsInOrderAndErrorsBehindThem) {
  int made = 0;
  Ahead<int> numbers([&]() -> std::optional<int> {
    if (made == 5) throw Error(ErrorKind::BadData, "no more");
    return made++;
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(numbers.next(), i);
  EXPECT_THROW((void)numbers.next(), Error);
  EXPECT_THROW((void)numbers.next(), Error) << "it stays so";

  Ahead<int> none([]() -> std::optional<int> { return std::nullopt; });
  EXPECT_FALSE(none.next());
  EXPECT_FALSE(none.next());
}

TEST(Ahead, IsOneAheadAndEndsWhenItIsLeft) {
  std::atomic<int> made = 0;
  {
    Ahead<int> numbers([&]() -> std::optional<int> { return ++made; });
    EXPECT_EQ(numbers.next(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(made, 3) << "one is ready, one is made";
  }
  const int after = made;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, after);
}

TEST(Ranks, EveryPieceIsDoneOnce) {
  std::atomic<int> done = 0;
  on_each_rank(4, [&](Ranks& ranks) {
    for (int again = 0; again < 2; ++again) {
      const auto results = spread(ranks, "test", 10, [&](std::int64_t i) {
        ++done;
        Packer packer;
        packer.put(i * i);
        return packer.take();
      });
      ASSERT_EQ(results.size(), 10U);
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(Unpacker(results[i]).number(), static_cast<std::int64_t>(i * i));
      }
    }
  });
  EXPECT_EQ(done, 20);
}

TEST(Ranks, TheLivingDoWhatTheDeadLeft) {
  struct Death {};
  Hub hub;
  hub.elastic = true;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(hub, rank, 3);
      try {
        const auto results = spread(ranks, "test", 12, [&](std::int64_t i) {
          // Rank 1 dies with a piece in its hands.
          if (rank == 1) throw Death();
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          Packer packer;
          packer.put(i * i);
          return packer.take();
        });
        ASSERT_EQ(results.size(), 12U);
        for (std::size_t i = 0; i < results.size(); ++i) {
          EXPECT_EQ(Unpacker(results[i]).number(), static_cast<std::int64_t>(i * i));
        }
        Packer packer;
        if (rank == 0) packer.put(std::string_view("all"));
        EXPECT_EQ(Unpacker(broadcast(ranks, "test", packer.take())).text(), "all");
      } catch (const Death&) {
        const std::lock_guard lock(hub.mutex);
        hub.dead.insert(rank);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(hub.dead, std::set<int>{1});
}

}  // namespace
}  // namespace quench
