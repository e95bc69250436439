// SPDX-License-Identifier: Apache-2.0
// The notes that ranks leave for each other in the store of rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "exec/engine/torch.h"
#include "quench/ranks.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#pragma GCC diagnostic pop

namespace quench::exec {

/// Why a job has ended for all.
struct RankFailure {
  int rank = 0;
  ErrorKind kind = ErrorKind::Internal;
  std::string sentence;
};

/// A store that knows who is alive: every rank counts up a note of its own twice a second, on a
/// thread of its own, and looks whether one has failed.
class RankStore {
 public:
  explicit RankStore(const RankOptions& options);
  ~RankStore();
  RankStore(const RankStore&) = delete;
  RankStore& operator=(const RankStore&) = delete;

  void set(const std::string& key, std::string_view text);
  std::string get(const std::string& key);
  std::int64_t add(const std::string& key, std::int64_t value);
  void remove(const std::string& key);
  /// Returns when `from` has set the key; throws when a rank has failed or `from` is silent.
  void wait_for(const std::string& key, int from);
  bool has(const std::string& key);
  /// `to` in place of `from`, which is empty where there is no such key; what is there now.
  std::string exchange(const std::string& key, std::string_view from, std::string_view to);
  /// Whether a rank has been heard of lately, as far as was looked.
  bool alive(int rank);
  /// Tells the others that this rank is here. An Error where one of its number is.
  void come();
  /// Ranks that have not come so far.
  std::vector<int> missing();
  /// All ranks are here; else an Error that names the first missing.
  void wait_for_all();
  void check();
  bool fail(ErrorKind kind, std::string_view sentence) noexcept;
  void leave();

  const RankOptions& options() const noexcept { return options_; }
  c10::intrusive_ptr<c10d::Store> torch() const { return store_; }
  /// Runs a call of libtorch's; what it throws is told as what another rank failed with, or as a
  /// broken connection.
  template <typename Call>
  auto guarded(const Call& call) {
    try {
      return call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      lost(error.what());
    }
  }

 private:
  [[noreturn]] void lost(std::string_view reason);
  void watch();
  void look(c10d::Store& own);
  std::optional<RankFailure> failure();
  void note(RankFailure failure);

  struct Heard {
    std::int64_t beat = -1;
    std::chrono::steady_clock::time_point when;
  };

  RankOptions options_;
  std::map<int, Heard> heard_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::optional<RankFailure> failure_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> leaving_ = false;
  std::thread watcher_;
};

}  // namespace quench::exec
