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
       {activation_rows(), arithmetic_rows(), layer_rows(),  norm_rows(),   reduce_rows(),
        shape_rows(),      slice_rows(),      pick_rows(),   create_rows(), image_rows(),
        quant_rows(),      control_rows(),    rnn_rows(),    crf_rows(),    detection_rows(),
        function_rows(),   pair_rows(),       window_rows(), place_rows(),  diagonal_rows(),
        scan_rows(),       order_rows(),      region_rows(), array_rows()}) {
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
    for (const std::string_view name : parts_of(row->pir.empty() ? row->name : row->pir, ' ')) {
      index.emplace(name, row);
    }
  }
  return index;
}

const OpRow* find(const Index& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

std::vector<std::string_view> parts_of(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (end > 0) parts.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

std::optional<AttributeNote> find_attribute(const OpRow& row, std::string_view name) {
  for (const std::string_view token : parts_of(row.attributes, ' ')) {
    const std::size_t equals = token.find('=');
    const std::string_view names = token.substr(0, equals);
    const std::size_t bar = names.find('|');
    if (names.substr(0, bar) != name) continue;
    AttributeNote result{.name = name, .other_name = {}, .otherwise = {}};
    if (bar != std::string_view::npos) result.other_name = names.substr(bar + 1);
    if (equals != std::string_view::npos) result.otherwise = token.substr(equals + 1);
    return result;
  }
  return std::nullopt;
}

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
