// SPDX-License-Identifier: Apache-2.0
// A reader's table of operators, put together from its families and searched by name.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace quench::formats {

/// Rows by the member that names them, sorted.
template <typename Row, std::string_view Row::*Name>
class RowTable {
 public:
  RowTable(std::initializer_list<std::span<const Row>> families) {
    for (const std::span<const Row> family : families) {
      for (const Row& row : family) rows_.push_back(&row);
    }
    std::ranges::sort(rows_, {}, Name);
  }

  std::span<const Row* const> all() const noexcept { return rows_; }
  /// Null: not known.
  const Row* find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(rows_, name, {}, Name);
    return found == rows_.end() || (*found)->*Name != name ? nullptr : *found;
  }

 private:
  std::vector<const Row*> rows_;
};

}  // namespace quench::formats
