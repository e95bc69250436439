// SPDX-License-Identifier: Apache-2.0
// Edit distance over names.
#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace quench {
namespace {

/// Longer names are never compared: the table would grow with hostile input.
constexpr std::size_t kMaxLength = 200;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > kMaxLength) return {};
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::string result;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      result = candidate;
    }
  }
  if (!result.empty()) return result;
  // "batch_size" is far from "batch" by letters.
  constexpr std::size_t kTelling = 4;
  for (const std::string& candidate : candidates) {
    const bool begins = name.starts_with(candidate) || candidate.starts_with(name);
    if (begins && std::min(name.size(), candidate.size()) >= kTelling) return candidate;
  }
  return {};
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string found = nearest(name, candidates);
  return found.empty() ? std::string() : format("; did you mean '{}'?", found);
}

}  // namespace quench
