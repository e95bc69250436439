// SPDX-License-Identifier: Apache-2.0
// Notes between ranks, and who is alive.
#include "exec/engine/ranks_store.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace quench::exec {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBeat = 500ms;
/// A rank beats on a thread of its own: so long a silence is no long computation.
constexpr double kSilence = 60;
constexpr double kLeastSilence = 5;
/// Where others would do its share: one that only slept does no harm, the work is done twice.
constexpr auto kLost = 5s;
constexpr const char* kFailed = "failed";

/// A short timeout is about coming: a rank that is here beats as often as its machine lets it.
double longest_silence(const RankOptions& options) {
  return std::clamp(options.timeout_seconds, kLeastSilence, kSilence);
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 1e6) * 1000));
}

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::string first_line_of(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string beat_of(int rank) { return format("beat/{}", rank); }
std::string here(int rank) { return format("here/{}", rank); }

c10::intrusive_ptr<c10d::TCPStore> open_store(const RankOptions& options, bool serves) {
  c10d::TCPStoreOptions how;
  how.port = static_cast<std::uint16_t>(options.port);
  how.isServer = serves;
  how.waitWorkers = false;
  how.timeout = milliseconds(options.timeout_seconds);
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.address, how);
  } catch (const std::exception& error) {
    const std::string_view reason = error.what();
    if (serves && (reason.find("in use") != std::string_view::npos ||
                   reason.find("EADDRINUSE") != std::string_view::npos)) {
      fail(ErrorKind::Io,
           "port {} of this machine is in use; give another (MASTER_PORT, or --port of quench "
           "launch)",
           options.port);
    }
    if (serves) {
      fail(ErrorKind::Io, "rank 0 cannot listen at {}:{}: {}", options.address, options.port,
           first_line_of(reason));
    }
    fail(
        ErrorKind::Io,
        "rank 0 could not be reached at {}:{} within {} s; is it started, and is that its machine?",
        options.address, options.port, options.timeout_seconds);
  }
}

RankFailure parse(std::string_view text) {
  RankFailure failure{.sentence = std::string(text)};
  const std::size_t first = text.find('\n');
  const std::size_t second = text.find('\n', first + 1);
  if (second == std::string_view::npos) return failure;
  int kind = 0;
  (void)std::from_chars(text.data(), text.data() + first, failure.rank);
  (void)std::from_chars(text.data() + first + 1, text.data() + second, kind);
  failure.kind = static_cast<ErrorKind>(kind);
  failure.sentence = std::string(text.substr(second + 1));
  return failure;
}

}  // namespace

RankStore::RankStore(const RankOptions& options)
    : options_(options), store_(open_store(options, options.rank == 0)) {
  watcher_ = std::thread([this] { watch(); });
}

RankStore::~RankStore() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  watcher_.join();
}

void RankStore::set(const std::string& key, std::string_view text) {
  guarded([&] { store_->set(key, bytes_of(text)); });
}

std::string RankStore::get(const std::string& key) {
  return guarded([&] {
    const std::vector<std::uint8_t> bytes = store_->get(key);
    return std::string(bytes.begin(), bytes.end());
  });
}

std::int64_t RankStore::add(const std::string& key, std::int64_t value) {
  return guarded([&] { return store_->add(key, value); });
}

void RankStore::remove(const std::string& key) {
  guarded([&] { (void)store_->deleteKey(key); });
}

bool RankStore::has(const std::string& key) {
  return guarded([&] { return store_->check({key}); });
}

std::string RankStore::exchange(const std::string& key, std::string_view from,
                                std::string_view to) {
  return guarded([&] {
    const std::vector<std::uint8_t> now = store_->compareSet(key, bytes_of(from), bytes_of(to));
    return std::string(now.begin(), now.end());
  });
}

bool RankStore::alive(int rank) {
  const std::int64_t beat = add(beat_of(rank), 0);
  const auto now = Clock::now();
  Heard& heard = heard_[rank];
  if (beat != heard.beat) heard = {.beat = beat, .when = now};
  return now - heard.when < kLost;
}

void RankStore::wait_for(const std::string& key, int from) {
  constexpr auto kLongest = 20ms;
  const double silence = longest_silence(options_);
  std::chrono::milliseconds pause = 0ms;
  std::int64_t beat = -1;
  auto heard = Clock::now();
  auto looked = heard;
  while (!guarded([&] { return store_->check({key}); })) {
    check();
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2 + 1ms, kLongest);
    const auto now = Clock::now();
    if (now - looked < kBeat) continue;
    looked = now;
    const std::int64_t last = add(beat_of(from), 0);
    if (last != beat) heard = now;
    beat = last;
    if (now - heard < std::chrono::duration<double>(silence)) continue;
    quench::fail(ErrorKind::Io,
                 "rank {} has been silent for {} s: it was killed, or its machine is lost", from,
                 silence);
  }
}

void RankStore::come() {
  // One that may die may come again, and does its pieces anew.
  if (add(here(options_.rank), 1) == 1 || options_.elastic) return;
  quench::fail(ErrorKind::BadConfig,
               "there is another rank {} at {}:{}; give every process a number of its own, and "
               "every job a port",
               options_.rank, options_.address, options_.port);
}

std::vector<int> RankStore::missing() {
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!has(here(rank))) ranks.push_back(rank);
  }
  return ranks;
}

void RankStore::wait_for_all() {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options_.size; ++rank) keys.push_back(here(rank));
  const auto begin = Clock::now();
  const std::chrono::duration<double> most(options_.timeout_seconds);
  while (!guarded([&] { return store_->check(keys); })) {
    check();
    std::this_thread::sleep_for(5ms);
    if (Clock::now() - begin < most) continue;
    const std::vector<int> late = missing();
    if (late.empty()) return;
    quench::fail(ErrorKind::Io, "rank {} of {} did not come within {} s; start it, or fewer ranks",
                 late.front(), options_.size, options_.timeout_seconds);
  }
}

void RankStore::note(RankFailure failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  failed_ = true;
}

std::optional<RankFailure> RankStore::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void RankStore::look(c10d::Store& own) {
  (void)own.add(beat_of(options_.rank), 1);
  if (!own.check({kFailed})) return;
  const std::vector<std::uint8_t> bytes = own.get(kFailed);
  note(parse(std::string(bytes.begin(), bytes.end())));
}

/// With a connection of its own: a call of libtorch's that waits keeps the other busy.
void RankStore::watch() {
  try {
    const auto own = open_store(options_, false);
    while (true) {
      look(*own);
      std::unique_lock lock(mutex_);
      if (stop_.wait_for(lock, failure_ ? 5s : kBeat, [this] { return stopped_; })) return;
    }
  } catch (const std::exception&) {
    if (leaving_) return;
    note({.rank = 0, .kind = ErrorKind::Io, .sentence = "it was lost: its connections are closed"});
  }
}

void RankStore::check() {
  if (!failed_) return;
  const RankFailure why = *failure();
  quench::fail(why.kind, "rank {}: {}", why.rank, why.sentence);
}

void RankStore::lost(std::string_view reason) {
  // Whoever failed says why; that takes a moment.
  for (int i = 0; i < 40 && !failed_; ++i) std::this_thread::sleep_for(50ms);
  check();
  quench::fail(ErrorKind::Io, "the connection to the other ranks broke: {}", first_line_of(reason));
}

bool RankStore::fail(ErrorKind kind, std::string_view sentence) noexcept {
  const bool first_rank = options_.rank == 0;
  try {
    const std::string text = format("{}\n{}\n{}", options_.rank, static_cast<int>(kind), sentence);
    if (!failed_) (void)store_->compareSet(kFailed, {}, bytes_of(text));
    const std::vector<std::uint8_t> found = store_->get(kFailed);
    const bool own = parse(std::string(found.begin(), found.end())).rank == options_.rank;
    (void)store_->add("gone", 1);
    // The store goes with rank 0: the others are to read it before.
    const auto begin = Clock::now();
    while (first_rank && store_->add("gone", 0) < options_.size && Clock::now() - begin < 3s) {
      std::this_thread::sleep_for(20ms);
    }
    leaving_ = true;
    return own || first_rank;
  } catch (const std::exception&) {
    return first_rank || !failed_;
  }
}

void RankStore::leave() {
  leaving_ = true;
  set(format("left/{}", options_.rank), "1");
  const std::int64_t left = add("left", 1);
  if (options_.rank != 0 || left == options_.size) return;
  const auto begin = Clock::now();
  const std::chrono::duration<double> most(longest_silence(options_));
  const auto still_there = [&] {
    if (!options_.elastic) return add("left", 0) < options_.size;
    // One that died never leaves.
    for (int rank = 1; rank < options_.size; ++rank) {
      if (!has(format("left/{}", rank)) && alive(rank)) return true;
    }
    return false;
  };
  while (still_there() && Clock::now() - begin < most) {
    check();
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace quench::exec
