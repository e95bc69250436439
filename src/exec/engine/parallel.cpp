// SPDX-License-Identifier: Apache-2.0
// A thread pool inside one parallel region of OpenMP, so that no thread is started that libtorch
// and oneDNN do not have anyway.
#include "exec/engine/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/engine/torch.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quench::exec {
namespace {

using Work = c10::function_ref<void(std::int64_t, std::int64_t)>;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Waits until the number differs from `old`: awake for some 100 us, twice what it takes to wake a
/// thread. Threads that fall asleep sooner, after every small imbalance, are woken for every piece
/// of work once a neighbour has put them out of step.
template <typename T>
T wait_for_change(const std::atomic<T>& number, T old) {
  constexpr int kSpins = 4000;
  for (int i = 0; i < kSpins; ++i) {
    const T now = number.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  number.wait(old, std::memory_order_acquire);
  return number.load(std::memory_order_acquire);
}

/// A loop is split into parts, one for each thread, which a thread must claim before it runs
/// them. Whoever comes late, because it slept or the system gave its core to another process, finds
/// its part taken by the thread that called: nobody waits for a thread that has not begun.
class ThreadPool {
 public:
  explicit ThreadPool(int most) : claims_(static_cast<std::size_t>(most)) {}

  /// OpenMP may give fewer threads than were asked for.
  void set_size(int size) { size_ = size; }
  std::int64_t size() const { return size_; }

  void share(std::int64_t begin, std::int64_t end, std::int64_t parts, Work work) {
    begin_ = begin;
    end_ = end;
    chunk_ = (end - begin + parts - 1) / parts;
    work_ = work;
    done_.store(0, std::memory_order_relaxed);
    call(static_cast<std::uint32_t>(parts));
    run_part(0);
    const int own = run_unclaimed(epoch_, static_cast<std::uint32_t>(parts), 1);
    const int others = static_cast<int>(parts) - 1 - own;
    for (int done = done_.load(std::memory_order_acquire); done != others;) {
      done = wait_for_change(done_, done);
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  void follow(int index) {
    for (std::uint32_t seen = 0;;) {
      (void)wait_for_change(calls_, seen);
      const std::uint64_t call = call_.load(std::memory_order_acquire);
      seen = static_cast<std::uint32_t>(call >> kEpochShift);
      const auto parts = static_cast<std::uint32_t>(call);
      if (parts == kClosed) return;
      const int ran = run_unclaimed(seen, parts, static_cast<std::uint32_t>(index));
      if (ran == 0) continue;
      done_.fetch_add(ran, std::memory_order_acq_rel);
      done_.notify_one();
    }
  }

  void close() { call(kClosed); }

 private:
  static constexpr int kEpochShift = 32;
  static constexpr std::uint32_t kClosed = ~0U;

  /// The last call in which a part was claimed.
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> epoch{0};
  };

  void call(std::uint32_t parts) {
    ++epoch_;
    call_.store((std::uint64_t{epoch_} << kEpochShift) | parts, std::memory_order_release);
    calls_.store(epoch_, std::memory_order_seq_cst);
    calls_.notify_all();
  }

  /// A thread that comes so late that its call is over finds every part of it claimed, and the
  /// claims of later calls newer than its own.
  bool claim(std::uint32_t epoch, std::uint32_t part) {
    std::atomic<std::uint32_t>& last = claims_[part].epoch;
    std::uint32_t before = last.load(std::memory_order_relaxed);
    const bool is_free = static_cast<std::int32_t>(epoch - before) > 0;
    return is_free && last.compare_exchange_strong(before, epoch, std::memory_order_acq_rel);
  }

  /// Runs what nobody has begun, `first` first: each thread keeps the data of its own part in its
  /// caches from call to call. The caller has run part 0.
  int run_unclaimed(std::uint32_t epoch, std::uint32_t parts, std::uint32_t first) {
    int ran = 0;
    for (std::uint32_t i = 0; i + 1 < parts; ++i) {
      const std::uint32_t part = 1 + (first - 1 + i) % (parts - 1);
      if (!claim(epoch, part)) continue;
      run_part(part);
      ++ran;
    }
    return ran;
  }

  void run_part(std::int64_t index) {
    const std::int64_t begin = begin_ + index * chunk_;
    if (begin >= end_) return;
    try {
      work_(begin, std::min(begin + chunk_, end_));
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      error_ = std::current_exception();
    }
  }

  alignas(64) std::atomic<std::uint32_t> calls_{0};  ///< the newest call, which threads wait for
  std::atomic<std::uint64_t> call_{0};               ///< the same with the number of its parts
  std::int64_t begin_ = 0, end_ = 0, chunk_ = 0;
  Work work_ = nullptr;
  alignas(64) std::atomic<int> done_{0};  ///< parts of this call that other threads have run
  alignas(64) int size_ = 1;
  std::uint32_t epoch_ = 0;
  std::vector<Claim> claims_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

thread_local ThreadPool* current = nullptr;
thread_local std::int64_t shared = 0;

}  // namespace

std::int64_t pool_threads() { return current != nullptr ? current->size() : at::get_num_threads(); }

bool in_pool() { return current != nullptr; }

std::int64_t times_shared() { return shared; }

void share(std::int64_t begin, std::int64_t end, std::int64_t grain, Work work) {
  if (begin >= end) return;
  constexpr std::int64_t kCheaper = 4;
  const std::int64_t least = std::max<std::int64_t>(grain / kCheaper, 1);
  const std::int64_t parts = std::min((end - begin + least - 1) / least, pool_threads());
  if (parts > 1) ++shared;
  if (current == nullptr) return at::parallel_for(begin, end, grain, work);
  if (parts == 1) return work(begin, end);
  current->share(begin, end, parts, work);
}

void run_in_pool(c10::function_ref<void()> work) {
  const int threads = omp_get_max_threads();
  if (threads == 1 || current != nullptr || omp_in_parallel() != 0) return work();
  std::exception_ptr error;
  ThreadPool pool(threads);
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0) {
      pool.follow(omp_get_thread_num());
    } else {
      pool.set_size(omp_get_num_threads());
      current = &pool;
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      current = nullptr;
      pool.close();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace quench::exec
