// SPDX-License-Identifier: Apache-2.0
// Makes the next item on a thread of its own while the one before it is used.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace quench {

/// Items in the order in which `make` gives them, until it gives none. What it throws is thrown by
/// `next`, behind the items before it.
template <typename Item>
class Ahead {
 public:
  explicit Ahead(std::function<std::optional<Item>()> make)
      : make_(std::move(make)), thread_([this] { work(); }) {}
  ~Ahead() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ready_ || ended_; });
    if (ready_) {
      std::optional<Item> item = std::exchange(ready_, std::nullopt);
      lock.unlock();
      changed_.notify_all();
      return item;
    }
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }

 private:
  void work() {
    while (true) {
      std::optional<Item> item;
      std::exception_ptr error;
      try {
        item = make_();
      } catch (...) {
        error = std::current_exception();
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !ready_ || stopped_; });
      if (stopped_) return;
      ended_ = !item;
      error_ = error;
      ready_ = std::move(item);
      lock.unlock();
      changed_.notify_all();
      if (ended_) return;
    }
  }

  std::function<std::optional<Item>()> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Item> ready_;
  std::exception_ptr error_;
  bool ended_ = false;
  bool stopped_ = false;
  std::thread thread_;  ///< last: it uses all that stands above
};

}  // namespace quench
