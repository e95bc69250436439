// SPDX-License-Identifier: Apache-2.0
// Pools of blocks behind libtorch's allocator: best fit for large ones, by size for small ones.
#include "exec/engine/pool_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/memory.h"

namespace quench::exec {
namespace {

constexpr std::size_t kSmall = std::size_t{64} << 10;
constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kGrain = 4096;

/// In huge pages where there is room for one: MobileNetV2 at batch 8 takes 6 % less time.
void* new_block(std::size_t size) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const bool huge = size >= kHugePage;
  void* block = nullptr;
  const auto alignment = huge ? kHugePage : static_cast<std::size_t>(kAlignment);
  if (::posix_memalign(&block, alignment, size) != 0) throw std::bad_alloc();
  // Advice: small pages serve as well.
  if (huge) (void)::madvise(block, size, MADV_HUGEPAGE);
  return block;
}

/// What the process is to stay under while a session that has a ceiling runs.
struct Ceiling {
  std::uint64_t bytes = 0;   ///< 0: none
  std::uint64_t others = 0;  ///< what it held besides the pool when the run began
};

/// Blocks in use and blocks waiting, by size.
class Pool {
 public:
  /// Returns what held before.
  Ceiling set_ceiling(std::uint64_t bytes) {
    const std::uint64_t now = bytes > 0 ? resident_bytes() : 0;
    const std::lock_guard lock(mutex_);
    return std::exchange(ceiling_, {bytes, now - std::min(now, total_)});
  }
  void set_ceiling(const Ceiling& before) {
    const std::lock_guard lock(mutex_);
    ceiling_ = before;
  }
  /// Throws std::bad_alloc where so much more would be above the ceiling.
  void expect_room(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    make_room(size);
  }

  void* take(std::size_t size) {
    const std::size_t wanted = (size + kGrain - 1) / kGrain * kGrain;
    const std::lock_guard lock(mutex_);
    auto found = free_.lower_bound(wanted);
    // A block more than twice too large is left for a tensor that needs it.
    if (found == free_.end() || found->first > 2 * wanted) {
      make_room(wanted);
      void* block = new_block(wanted);
      sizes_.emplace(block, wanted);
      total_ += wanted;
      return block;
    }
    void* block = found->second;
    free_.erase(found);
    return block;
  }

  /// False for a block that is not the pool's.
  bool give(void* block) {
    const std::lock_guard lock(mutex_);
    const auto known = sizes_.find(block);
    if (known == sizes_.end()) return false;
    free_.emplace(known->second, block);
    return true;
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    give_back();
  }

 private:
  void give_back() {
    for (const auto& [size, block] : free_) {
      sizes_.erase(block);
      total_ -= size;
      std::free(block);
    }
    free_.clear();
  }

  bool has_room(std::uint64_t size) const {
    // Blocks that nobody has written to yet are not resident, but will be.
    return std::max(resident_bytes(), ceiling_.others + total_) + size <= ceiling_.bytes;
  }

  void make_room(std::uint64_t size) {
    if (ceiling_.bytes == 0 || has_room(size)) return;
    // What others have freed was theirs when the run began.
    const std::uint64_t before = resident_bytes();
    give_back_memory();
    const std::uint64_t freed = before - std::min(before, resident_bytes());
    ceiling_.others -= std::min(ceiling_.others, freed);
    give_back();
    give_back_memory();
    if (!has_room(size)) throw std::bad_alloc();
  }

  std::mutex mutex_;
  std::multimap<std::size_t, void*> free_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::uint64_t total_ = 0;  ///< bytes of all blocks
  Ceiling ceiling_;
};

/// Small blocks, kept by size: eight sizes for each power of two. A block's size stands before it.
class SmallPool {
 public:
  void* take(std::size_t size) {
    const std::size_t units = (size + kUnit - 1) / kUnit - 1;
    const auto width = static_cast<unsigned>(std::bit_width(units));
    const unsigned shift = width > kBits ? width - kBits : 0;
    const std::size_t which = shift * kSteps + (units >> shift);
    {
      const std::lock_guard lock(mutex_);
      std::vector<void*>& waiting = free_[which];
      if (!waiting.empty()) {
        void* block = waiting.back();
        waiting.pop_back();
        return block;
      }
    }
    const std::size_t rounded = (((units >> shift) + 1) << shift) * kUnit;
    auto* whole = static_cast<std::byte*>(::operator new(rounded + kUnit, kAlignment));
    std::memcpy(whole, &which, sizeof which);
    const std::lock_guard lock(mutex_);
    known_.insert(whole + kUnit);
    return whole + kUnit;
  }

  bool knows(void* block) {
    const std::lock_guard lock(mutex_);
    return known_.contains(block);
  }

  void give(void* block) {
    std::size_t which = 0;
    std::memcpy(&which, whole_of(block), sizeof which);
    const std::lock_guard lock(mutex_);
    free_[which].push_back(block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (std::vector<void*>& waiting : free_) {
      for (void* block : waiting) {
        known_.erase(block);
        ::operator delete(whole_of(block), kAlignment);
      }
      waiting.clear();
    }
  }

 private:
  static constexpr std::size_t kUnit = static_cast<std::size_t>(kAlignment);
  static constexpr unsigned kBits = 3;
  static constexpr std::size_t kSteps = std::size_t{1} << kBits;
  static constexpr std::size_t kClasses = kSteps * (std::bit_width(kSmall / kUnit) + 1);

  static void* whole_of(void* block) { return static_cast<std::byte*>(block) - kUnit; }

  std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  std::unordered_set<void*> known_;  ///< all blocks, waiting or not
};

/// Never destroyed: tensors may outlive every static object.
Pool& pool() {
  static auto* instance = new Pool;
  return *instance;
}
SmallPool& small_pool() {
  static auto* instance = new SmallPool;
  return *instance;
}

class PoolAllocator final : public c10::Allocator {
 public:
  // Which of these override depends on libtorch's version: 1.13 has the first, 2.x the other two.
  // NOLINTBEGIN(modernize-use-override): see above
  c10::DataPtr allocate(std::size_t size) const {
    if (size == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, c10::Device(c10::kCPU)};
    const bool small = size < kSmall;
    void* block = small ? small_pool().take(size) : pool().take(size);
    return {block, block, small ? &free_small : &free_large, c10::Device(c10::kCPU)};
  }
  c10::DataPtr allocate(std::size_t size) { return std::as_const(*this).allocate(size); }
  void copy_data(void* to, const void* from, std::size_t count) const {
    std::memcpy(to, from, count);
  }
  // NOLINTEND(modernize-use-override)

  /// Some of libtorch's kernels (sorting, unique) free by address alone.
  c10::DeleterFnPtr raw_deleter() const override { return &free_any; }

 private:
  static void free_small(void* block) { small_pool().give(block); }
  static void free_large(void* block) { pool().give(block); }
  static void free_any(void* block) {
    if (pool().give(block)) return;
    // libtorch's oneDNN brings blocks that it got from the system.
    small_pool().knows(block) ? small_pool().give(block) : std::free(block);
  }
};

}  // namespace

void use_pool_allocator() {
  static PoolAllocator allocator;
  constexpr std::uint8_t kPriority = 100;  // above libtorch's own
  c10::SetCPUAllocator(&allocator, kPriority);
}

struct CeilingScope::State {
  Ceiling before;
};

CeilingScope::CeilingScope(std::uint64_t bytes) {
  if (bytes > 0) state_ = std::make_unique<State>(State{pool().set_ceiling(bytes)});
}

CeilingScope::~CeilingScope() {
  if (state_) pool().set_ceiling(state_->before);
}

void expect_room(std::uint64_t bytes) { pool().expect_room(bytes); }

void trim_pool() {
  pool().trim();
  small_pool().trim();
}

}  // namespace quench::exec
