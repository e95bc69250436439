// SPDX-License-Identifier: Apache-2.0
// The table of Paddle's operators, put together from its families.
#include "formats/paddle/rows.h"

#include <map>
#include <string>
#include <vector>

namespace quench::paddle {
namespace {

using Index = std::map<std::string, const OpRow*, std::less<>>;

std::vector<const OpRow*> collect() {
  std::vector<const OpRow*> rows;
  for (const auto family :
       {activation_rows(), arithmetic_rows(), layer_rows(), norm_rows(), reduce_rows(),
        shape_rows(), slice_rows(), pick_rows(), create_rows(), image_rows(), quant_rows(),
        control_rows(), rnn_rows(), detection_rows()}) {
    for (const OpRow& row : family) rows.push_back(&row);
  }
  return rows;
}

Index index_by_name() {
  Index index;
  for (const OpRow* row : all_rows()) index.emplace(row->name, row);
  return index;
}

/// The first row that lists a name of PIR has it: rows of old operators leave theirs out.
Index index_by_pir() {
  Index index;
  for (const OpRow* row : all_rows()) {
    std::string_view names = row->pir.empty() ? row->name : row->pir;
    while (!names.empty()) {
      const std::size_t end = std::min(names.find(' '), names.size());
      index.emplace(names.substr(0, end), row);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }
  return index;
}

const OpRow* find(const Index& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

std::span<const OpRow* const> all_rows() {
  static const std::vector<const OpRow*> rows = collect();
  return rows;
}

const OpRow* find_row(std::string_view name) {
  static const Index index = index_by_name();
  return find(index, name);
}

const OpRow* find_pir_row(std::string_view name) {
  static const Index index = index_by_pir();
  return find(index, name);
}

}  // namespace quench::paddle
