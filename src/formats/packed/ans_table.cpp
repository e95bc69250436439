// SPDX-License-Identifier: Apache-2.0
// Scaled frequencies: how they are chosen from counts, and how they are written.
#include "formats/packed/ans_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace quench::packed {
namespace {

using Frequencies = std::array<std::uint32_t, kAlphabet>;

/// Bits that one more or one less in the frequency of a symbol saves or costs.
double step_cost(std::uint64_t count, std::uint32_t from, std::uint32_t to) {
  return static_cast<double>(count) * std::log2(static_cast<double>(from) / to);
}

/// Moves the sum to `total`, each step where it costs least or helps most.
void balance(std::span<const std::uint64_t> counts, Frequencies& frequencies, std::int64_t excess) {
  const std::uint32_t step = excess > 0 ? static_cast<std::uint32_t>(-1) : 1;
  for (; excess != 0; excess += excess > 0 ? -1 : 1) {
    std::size_t best = kAlphabet;
    double best_cost = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0 || (excess > 0 && frequencies[i] == 1)) continue;
      const double cost = step_cost(counts[i], frequencies[i], frequencies[i] + step);
      if (best != kAlphabet && cost >= best_cost) continue;
      best = i;
      best_cost = cost;
    }
    frequencies[best] += step;
  }
}

Frequencies scale(std::span<const std::uint64_t> counts, int scale_bits) {
  double sum = 0;
  for (const std::uint64_t count : counts) sum += static_cast<double>(count);
  const double factor = static_cast<double>(std::uint32_t{1} << scale_bits) / sum;
  Frequencies frequencies{};
  std::int64_t excess = -(std::int64_t{1} << scale_bits);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double exact = static_cast<double>(counts[i]) * factor;
    frequencies[i] = std::max(1U, static_cast<std::uint32_t>(std::lround(exact)));
    excess += frequencies[i];
  }
  balance(counts, frequencies, excess);
  return frequencies;
}

std::uint32_t fold(std::int64_t value) {
  return static_cast<std::uint32_t>(value < 0 ? -2 * value - 1 : 2 * value);
}

std::int64_t unfold(std::uint32_t value) {
  const auto half = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -half - 1 : half;
}

/// Rice's code with a parameter that follows the numbers: neighbouring frequencies are alike.
class Rice {
 public:
  static constexpr int kMaxUnary = 16;

  int parameter() const noexcept {
    return mean_ < 8 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(mean_) / 8));
  }
  void follow(std::uint32_t value) noexcept {
    mean_ += (static_cast<std::int64_t>(value) * 8 - static_cast<std::int64_t>(mean_)) / 4;
  }
  /// Long numbers are written whole behind a run of kMaxUnary ones.
  std::uint64_t length(std::uint32_t value) const noexcept {
    const std::uint32_t quotient = value >> parameter();
    return quotient < kMaxUnary ? quotient + 1 + static_cast<std::uint64_t>(parameter())
                                : kMaxUnary + 17;
  }
  void put(BitWriter& out, std::uint32_t value) const {
    const std::uint32_t quotient = value >> parameter();
    if (quotient >= kMaxUnary) {
      out.put((1U << kMaxUnary) - 1, kMaxUnary);
      return out.put(value, 17);
    }
    out.put((1U << quotient) - 1, static_cast<int>(quotient) + 1);
    out.put(value & ((1U << parameter()) - 1), parameter());
  }
  std::uint32_t get(BitReader& in) const {
    std::uint32_t quotient = 0;
    while (quotient < kMaxUnary && in.get(1) == 1) ++quotient;
    if (quotient == kMaxUnary) return in.get(17);
    return (quotient << parameter()) | in.get(parameter());
  }

 private:
  std::int64_t mean_ = 128;  ///< eight times the mean
};

}  // namespace

AnsTable::AnsTable(std::span<const std::uint32_t> frequencies, int scale_bits)
    : scale_bits_(scale_bits), rows_(kAlphabet) {
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    rows_[i] = {static_cast<std::uint16_t>(frequencies[i]), static_cast<std::uint16_t>(start)};
    slots_.insert(slots_.end(), frequencies[i], static_cast<std::uint8_t>(i));
    start += frequencies[i];
  }
}

AnsTable AnsTable::of(std::span<const std::uint64_t> counts, int scale_bits) {
  return {scale(counts, scale_bits), scale_bits};
}

void AnsTable::write(BitWriter& out) const {
  const std::size_t low = slots_.front();
  const std::size_t high = slots_.back();
  out.put(static_cast<std::uint32_t>(low), 8);
  out.put(static_cast<std::uint32_t>(high), 8);
  Rice rice;
  std::int64_t last = 0;
  for (std::size_t i = low; i <= high; ++i) {
    const std::uint32_t value = fold(std::int64_t{rows_[i].frequency} - last);
    rice.put(out, value);
    rice.follow(value);
    last = rows_[i].frequency;
  }
}

std::uint64_t AnsTable::bits() const {
  std::uint64_t sum = 16;
  Rice rice;
  std::int64_t last = 0;
  for (std::size_t i = slots_.front(); i <= slots_.back(); ++i) {
    const std::uint32_t value = fold(std::int64_t{rows_[i].frequency} - last);
    sum += rice.length(value);
    rice.follow(value);
    last = rows_[i].frequency;
  }
  return sum;
}

AnsTable AnsTable::read(BitReader& in, int scale_bits) {
  const std::int64_t total = std::int64_t{1} << scale_bits;
  const std::size_t low = in.get(8);
  const std::size_t high = in.get(8);
  Frequencies frequencies{};
  Rice rice;
  std::int64_t last = 0;
  std::int64_t sum = 0;
  for (std::size_t i = low; i <= high; ++i) {
    const std::uint32_t value = rice.get(in);
    rice.follow(value);
    last += unfold(value);
    if (last < 0 || last > total - sum) fail_damaged("frequencies are out of range");
    frequencies[i] = static_cast<std::uint32_t>(last);
    sum += last;
  }
  if (sum != total) fail_damaged("frequencies do not have the right sum");
  return {frequencies, scale_bits};
}

double AnsTable::cost(std::span<const std::uint64_t> counts) const {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    sum += static_cast<double>(counts[i]) * (scale_bits_ - std::log2(rows_[i].frequency));
  }
  return sum;
}

}  // namespace quench::packed
