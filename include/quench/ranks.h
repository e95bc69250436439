// SPDX-License-Identifier: Apache-2.0
// Several processes that share one job: who they are, and what they tell each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/context.h"
#include "quench/error.h"

namespace quench {

/// Where this process stands among the others, and where it finds them.
struct RankOptions {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  ///< the machine of rank 0
  int port = 29500;                   ///< there
  std::string interface = {};         ///< network interface, as eth0; empty: the one of our name
  double timeout_seconds = 300;       ///< how long another rank may stay silent
  bool elastic = false;               ///< others do the share of a rank that dies, unless it is 0
  bool tensor_parallel = false;       ///< each rank has a part of the model, and sees all samples
};

/// The processes of a job. All of them call the same functions in the same order; who does not, or
/// dies, ends the job for all with one sentence. Made by `join_ranks`; put into a Context, jobs
/// share their samples and layers, come to the same result on every rank, and rank 0 alone writes.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Whether each rank has a part of the model, reads and writes that alone, and sees all samples;
  /// else each has the model, and a part of the samples.
  virtual bool tensor_parallel() const noexcept { return false; }

  /// `what` names the message; one of another name is an Error(BadConfig): ranks have gone apart.
  virtual void send(int to, std::span<const std::byte> bytes, std::string_view what) = 0;
  virtual std::vector<std::byte> receive(int from, std::string_view what) = 0;
  /// A queue that all ranks take from, and open in the same order among their queues.
  virtual std::int64_t open_queue() = 0;
  /// The next number of a queue: 0, 1, 2 and so on, each to one rank.
  virtual std::int64_t take(std::int64_t queue) = 0;
  /// Error(BadConfig) where a rank has another text than rank 0; `what` as in "the model".
  virtual void agree(std::string_view what, std::string_view text) = 0;
  /// Throws what another rank failed with, or says which one is silent.
  virtual void check() = 0;
  /// Tells all that this rank has failed. Whether it is this rank that should say so: the first to
  /// fail, and rank 0.
  virtual bool fail(ErrorKind kind, std::string_view sentence) noexcept = 0;
  /// At the end of all work: rank 0 stays until the others have left.
  virtual void leave() = 0;

  /// Whether ranks may die: then they tell each other nothing but notes, which lie with rank 0.
  virtual bool elastic() const noexcept = 0;
  virtual void leave_note(const std::string& key, std::span<const std::byte> bytes) = 0;
  /// What was left under the key; nothing: not yet.
  virtual std::optional<std::vector<std::byte>> note(const std::string& key) = 0;
  /// Makes this rank the owner of `key` where that is `from`, which is -1 for nobody. The owner.
  virtual int claim(const std::string& key, int from) = 0;
  /// Whether a rank was heard of within the last seconds.
  virtual bool alive(int rank) = 0;
  /// Those that have not come so far: ranks that may die are not waited for.
  virtual std::vector<int> missing() { return {}; }
};

/// Waits for the others, until the timeout. Needs the engine, whose libtorch has c10d and Gloo.
std::shared_ptr<Ranks> join_ranks(const RankOptions& options, const Context& context = {});

}  // namespace quench
