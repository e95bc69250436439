// SPDX-License-Identifier: Apache-2.0
// Reads samples ahead on its own threads and puts them together in order.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "data/join.h"
#include "quench/data.h"

namespace quench {
namespace {

constexpr int kMaxWorkers = 16;

/// A place for one sample between the threads that read and the one that takes.
struct Slot {
  bool ready = false;
  Sample sample;
  std::exception_ptr error;
};

}  // namespace

struct BatchReader::State {
  State(SampleSource& samples, std::int64_t batch, const Context& settings, UnlikeSamples how)
      : source(samples), context(settings), batch_size(batch), unlike(how), size(samples.size()) {
    const int threads = source.concurrent() ? context.num_threads() : 1;
    const auto workers = static_cast<std::size_t>(std::clamp(threads, 1, kMaxWorkers));
    slots.resize(static_cast<std::size_t>(std::min(batch, size)) + 2 * workers);
    for (std::size_t i = 0; i < workers; ++i) pool.emplace_back([this] { work(); });
  }
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    room.notify_all();
    for (std::thread& thread : pool) thread.join();
  }

  Slot& slot(std::int64_t index) { return slots[static_cast<std::size_t>(index) % slots.size()]; }
  bool cancelled() const { return context.cancel != nullptr && context.cancel->load(); }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      room.wait(lock, [this] {
        return stopped || claimed >= size ||
               claimed - taken < static_cast<std::int64_t>(slots.size());
      });
      if (stopped || claimed >= size || cancelled()) return;
      const std::int64_t index = claimed++;
      lock.unlock();
      Slot result = read(index);
      lock.lock();
      // Nothing behind an error is ever handed out.
      if (result.error) claimed = size;
      slot(index) = std::move(result);
      ready.notify_one();
    }
  }

  Slot read(std::int64_t index) {
    Slot result{true, {}, nullptr};
    try {
      result.sample = source.read(index);
    } catch (const Error&) {
      result.error = std::current_exception();
    } catch (const std::exception& error) {
      result.error = std::make_exception_ptr(
          Error(ErrorKind::Internal, format("reading sample {} failed: {}", index, error.what())));
    }
    return result;
  }

  Sample take() {
    std::unique_lock lock(mutex);
    Slot& next = slot(taken);
    // The cancel flag rings no bell, so it is looked at now and then.
    while (!ready.wait_for(lock, std::chrono::milliseconds(20), [&] { return next.ready; })) {
      context.check_cancelled();
    }
    if (next.error) std::rethrow_exception(next.error);
    Sample sample = std::move(next.sample);
    next = Slot{};
    ++taken;
    room.notify_all();
    return sample;
  }

  /// Samples of the next batch.
  std::vector<Sample> take_batch() {
    std::vector<Sample> samples;
    if (ahead) samples.push_back(*std::exchange(ahead, std::nullopt));
    while (static_cast<std::int64_t>(samples.size()) < batch_size && taken < size) {
      Sample sample = take();
      if (unlike == UnlikeSamples::EndBatch && !samples.empty() &&
          !alike(samples.front(), sample)) {
        ahead = std::move(sample);
        break;
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  SampleSource& source;
  Context context;
  std::int64_t batch_size;
  UnlikeSamples unlike;
  std::int64_t size;
  std::mutex mutex;
  std::condition_variable room;   ///< a slot has become free
  std::condition_variable ready;  ///< a slot has been filled
  std::vector<Slot> slots;
  std::int64_t claimed = 0;  ///< samples that a worker has begun
  std::int64_t taken = 0;    ///< samples handed out
  bool stopped = false;
  std::optional<Sample> ahead;  ///< taken, but of another shape than those before it
  std::vector<std::thread> pool;
};

BatchReader::BatchReader(SampleSource& source, std::int64_t batch_size, const Context& context,
                         UnlikeSamples unlike) {
  if (batch_size < 1)
    fail(ErrorKind::Usage, "the batch size must be at least 1, got {}", batch_size);
  if (batch_size > 1 && !source.batchable()) {
    fail(ErrorKind::Usage,
         "the model's inputs have no batch dimension in common; use a batch size of 1");
  }
  state_ = std::make_unique<State>(source, batch_size, context, unlike);
}

BatchReader::~BatchReader() = default;

std::optional<Batch> BatchReader::next() {
  state_->context.check_cancelled();
  std::vector<Sample> samples = state_->take_batch();
  if (samples.empty()) return std::nullopt;
  return join(std::move(samples), state_->context.num_threads());
}

}  // namespace quench
