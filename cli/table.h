// SPDX-License-Identifier: Apache-2.0
// Aligned plain-text tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quench::cli {

enum class Align { Left, Right };

/// Rows under a header; columns are as wide as their widest cell.
class Table {
 public:
  Table& column(std::string title, Align align = Align::Left);
  void row(std::vector<std::string> cells);
  bool empty() const noexcept { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Prints on stdout, control characters taken out.
void print(std::string_view text);

/// "12.3 MB"; powers of 1000, as disks are sold.
std::string human_bytes(std::int64_t bytes);
/// "12,345,678".
std::string grouped(std::int64_t number);
/// Fixed digits, or "-" for a value that is not a number.
std::string fixed(double value, int digits);

}  // namespace quench::cli
