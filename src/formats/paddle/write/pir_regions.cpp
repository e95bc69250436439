// SPDX-License-Identifier: Apache-2.0
// PIR's operators with regions while they are written.
#include <utility>

#include "base/format.h"
#include "formats/paddle/write/pir_ops.h"

namespace quench::paddle::write {

PirOps::Scope PirOps::enter() {
  Scope outer{.ops = std::exchange(ops_, Json::array()), .vars = vars_, .numbers = numbers_};
  return outer;
}

Json PirOps::leave(Scope outer) {
  vars_ = std::move(outer.vars);
  numbers_ = std::move(outer.numbers);
  return std::exchange(ops_, std::move(outer.ops));
}

Json PirOps::argument(const std::string& variable) {
  numbers_[variable] = fresh_argument();
  return {{"#", numbers_[variable]}, {"TT", type_of(variable)}};
}

void PirOps::yield(const std::vector<std::string>& variables) {
  std::vector<std::int64_t> operands;
  for (const std::string& name : variables) operands.push_back(number(name));
  add("2.yield", operands, Json::array(), Json::array(), {});
  if (trainable_) ops_.back()["OA"] = Json::array();
}

void PirOps::write_regions(std::string_view name, const std::vector<std::string>& operands,
                           const std::vector<std::string>& made, Json regions) {
  Json op = {{"#", format("1.{}", name)}, {"A", Json::array()}, {"regions", std::move(regions)}};
  op["I"] = op["O"] = Json::array();
  std::vector<std::vector<std::string>> results;
  for (const std::string& operand : operands) op["I"].push_back({{"%", number(operand)}});
  for (const std::string& result : made) {
    op["O"].push_back({{"TT", type_of(result)}});
    results.push_back({result});
  }
  if (trainable_) op["OA"] = Json::array({pir_flags("stop_gradient", made.size())});
  add(std::move(op), results);
}

}  // namespace quench::paddle::write
