// SPDX-License-Identifier: Apache-2.0
// A team inside one parallel region of OpenMP, so that no thread is started that libtorch and
// oneDNN do not have anyway.
#include "exec/engine/team.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

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

/// Waits until the number differs from `old`: awake for some 25 us, about what it takes to wake a
/// thread.
template <typename T>
T wait_for_change(const std::atomic<T>& number, T old) {
  constexpr int kSpins = 1000;
  for (int i = 0; i < kSpins; ++i) {
    const T now = number.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  number.wait(old, std::memory_order_acquire);
  return number.load(std::memory_order_acquire);
}

class Team {
 public:
  /// OpenMP may give fewer threads than were asked for.
  void set_size(int size) { size_ = size; }
  std::int64_t size() const { return size_; }

  void share(std::int64_t begin, std::int64_t end, std::int64_t parts, Work work) {
    begin_ = begin;
    end_ = end;
    chunk_ = (end - begin + parts - 1) / parts;
    work_ = work;
    left_.store(size_ - 1, std::memory_order_relaxed);
    call();
    run_part(0);
    for (int left = left_.load(std::memory_order_acquire); left != 0;) {
      left = wait_for_change(left_, left);
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  void follow(int index) {
    for (std::uint32_t seen = 0;;) {
      seen = wait_for_change(calls_, seen);
      if (closed_) return;
      run_part(index);
      left_.fetch_sub(1, std::memory_order_acq_rel);
      left_.notify_one();
    }
  }

  void close() {
    closed_ = true;
    call();
  }

 private:
  void call() {
    calls_.fetch_add(1, std::memory_order_seq_cst);
    calls_.notify_all();
  }

  void run_part(int index) {
    const std::int64_t begin = begin_ + index * chunk_;
    if (begin >= end_) return;
    try {
      work_(begin, std::min(begin + chunk_, end_));
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      error_ = std::current_exception();
    }
  }

  alignas(64) std::atomic<std::uint32_t> calls_{0};
  std::int64_t begin_ = 0, end_ = 0, chunk_ = 0;
  Work work_ = nullptr;
  bool closed_ = false;
  alignas(64) std::atomic<int> left_{0};
  alignas(64) int size_ = 1;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

thread_local Team* current = nullptr;
thread_local std::int64_t shared = 0;

}  // namespace

std::int64_t sharing_threads() {
  return current != nullptr ? current->size() : at::get_num_threads();
}

bool in_team() { return current != nullptr; }

std::int64_t times_shared() { return shared; }

void share(std::int64_t begin, std::int64_t end, std::int64_t grain, Work work) {
  if (begin >= end) return;
  constexpr std::int64_t kCheaper = 4;
  const std::int64_t least = std::max<std::int64_t>(grain / kCheaper, 1);
  const std::int64_t parts = std::min((end - begin + least - 1) / least, sharing_threads());
  if (parts > 1) ++shared;
  if (current == nullptr) return at::parallel_for(begin, end, grain, work);
  if (parts == 1) return work(begin, end);
  current->share(begin, end, parts, work);
}

void run_as_team(c10::function_ref<void()> work) {
  const int threads = omp_get_max_threads();
  if (threads == 1 || current != nullptr || omp_in_parallel() != 0) return work();
  std::exception_ptr error;
  Team team;
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0) {
      team.follow(omp_get_thread_num());
    } else {
      team.set_size(omp_get_num_threads());
      current = &team;
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      current = nullptr;
      team.close();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace quench::exec
