// SPDX-License-Identifier: Apache-2.0
// A program as PIR's JSON: values have numbers, and some attributes are operands.
#include "formats/paddle/write/pir_writer.h"

#include <algorithm>

#include "base/format.h"
#include "formats/paddle/write/pir_ops.h"

namespace quench::paddle::write {
namespace {

class PirWriter {
 public:
  PirWriter(const Written& written, const std::optional<PirOriginal>& original)
      : original_(original), ops_(written.parameters, trainable(original)) {}

  Json run(const Program& program) {
    check(program);
    write(program, program.blocks.front());
    return whole();
  }

 private:
  static bool trainable(const std::optional<PirOriginal>& original) {
    return !original || original->root["base_code"].value("trainable", false);
  }

  static bool has_regions(const OpItem& op) { return op.find("block_0") != nullptr; }

  void check(const Program& program) const {
    std::set<std::string> unknown;
    for (const Block& block : program.blocks) {
      for (const OpItem& op : block.ops) {
        const bool known = op.find(kPirPlace) != nullptr || has_regions(op) ||
                           op.type == kArguments || op.type == kYield || ops_.knows(op);
        if (!known) unknown.insert(op.type);
      }
    }
    if (unknown.empty()) return;
    fail(ErrorKind::Unsupported, "the form that {} has in PIR is not known; write a .pdmodel",
         fmt::join(unknown, ", "));
  }

  void write(const Program& program, const Block& block) {
    for (const VarItem& var : block.vars) ops_.declare(var);
    for (const OpItem& op : block.ops) {
      if (const Attr* place = op.find(kPirPlace)) {
        copy(op, static_cast<std::size_t>(std::get<std::int64_t>(place->data)));
      } else if (has_regions(op)) {
        write_regions(program, op);
      } else if (op.type == kYield) {
        ops_.yield(op.inputs.at(0).variables);
      } else if (op.type != kArguments) {
        ops_.write(op);
      }
    }
  }

  void write_regions(const Program& program, const OpItem& op) {
    Json regions = Json::array();
    for (const char* name : {"block_0", "block_1"}) {
      const Attr* inside = op.find(name);
      if (inside == nullptr) continue;
      const auto index = static_cast<std::size_t>(std::get<BlockIndex>(inside->data).index);
      regions.push_back(region(program, program.blocks.at(index)));
    }
    std::vector<std::string> operands;
    for (const Argument& each : op.inputs) {
      operands.insert(operands.end(), each.variables.begin(), each.variables.end());
    }
    ops_.write_regions(op.type, operands, op.outputs.at(0).variables, std::move(regions));
  }

  Json region(const Program& program, const Block& block) {
    PirOps::Scope outer = ops_.enter();
    for (const VarItem& var : block.vars) ops_.declare(var);
    Json arguments = Json::array();
    for (const OpItem& op : block.ops) {
      if (op.type != kArguments) continue;
      for (const std::string& name : op.outputs.at(0).variables) {
        arguments.push_back(ops_.argument(name));
      }
    }
    write(program, block);
    Json inside = {{"#", format("block_{}", block.index)}, {"args", std::move(arguments)}};
    inside["ops"] = ops_.leave(std::move(outer));
    return {{"#", format("region_{}", block.index)}, {"blocks", Json::array({inside})}};
  }

  using Renames = std::map<std::string, std::string>;

  static void rename(const google::protobuf::RepeatedPtrField<OpDesc::Var>& then,
                     const std::vector<Argument>& now, Renames& names) {
    for (int i = 0; i < then.size(); ++i) {
      const auto& variables = now.at(static_cast<std::size_t>(i)).variables;
      for (int k = 0; k < then[i].arguments_size(); ++k) {
        names[then[i].arguments(k)] = variables.at(static_cast<std::size_t>(k));
      }
    }
  }

  /// An operator as it stood, with the numbers that its values have now.
  void copy(const OpItem& op, std::size_t place) {
    const OpDesc& then = original_->program.blocks(0).ops(static_cast<int>(place));
    Renames inputs;
    Renames outputs;
    rename(then.inputs(), op.inputs, inputs);
    rename(then.outputs(), op.outputs, outputs);
    Json json = original_->ops()[place];
    for (Json& operand : json["I"]) {
      const std::int64_t before = pir::integer(operand, "%");
      const bool with_maker = json.contains("regions") && is_made_alone(before, inputs);
      operand["%"] = with_maker ? copied(before, inputs) : operand_of(before, inputs);
    }
    if (json.contains("regions")) copy_regions(json, inputs);
    std::vector<std::vector<std::string>> made;
    for (const Json& result : json["O"]) {
      const auto names = original_->names.find(pir::integer(result, "%"));
      made.emplace_back();
      if (names == original_->names.end()) continue;
      for (const std::string& name : names->second) {
        const auto now = outputs.find(name);
        made.back().push_back(now == outputs.end() ? name : now->second);
      }
    }
    ops_.add(std::move(json), made);
  }

  /// What regions take and make gets new numbers; what they read of the values around them has
  /// those of now.
  void copy_regions(Json& json, const Renames& inputs) {
    std::map<std::int64_t, std::int64_t> numbers;
    number_results(json, numbers);
    renumber(json, numbers, inputs);
  }

  template <typename Visit>
  static void for_each_block(Json& json, const Visit& visit) {
    for (Json& region : json["regions"]) {
      for (Json& block : region["blocks"]) visit(block);
    }
  }

  void number_results(Json& json, std::map<std::int64_t, std::int64_t>& numbers) {
    for_each_block(json, [&](Json& block) {
      for (Json& argument : block["args"]) {
        const std::int64_t then = pir::integer(argument, "#");
        argument["#"] = numbers[then] = ops_.fresh_argument();
      }
      for (Json& op : block["ops"]) {
        for (Json& result : op["O"]) {
          const std::int64_t then = pir::integer(result, "%");
          if (then != 0) result["%"] = numbers[then] = ops_.fresh();
        }
        if (op.contains("regions")) number_results(op, numbers);
      }
    });
  }

  void renumber(Json& json, const std::map<std::int64_t, std::int64_t>& numbers,
                const Renames& inputs) {
    for_each_block(json, [&](Json& block) {
      for (Json& op : block["ops"]) {
        for (Json& operand : op["I"]) {
          const std::int64_t then = pir::integer(operand, "%");
          const auto inner = numbers.find(then);
          if (then != 0) {
            operand["%"] = inner == numbers.end() ? outer_of(then, inputs) : inner->second;
          }
        }
        if (op.contains("regions")) renumber(op, numbers, inputs);
      }
    });
  }

  /// A value around a region: under its name, or copied with what made it.
  std::int64_t outer_of(std::int64_t then, const Renames& inputs) {
    const auto names = original_->names.find(then);
    if (names != original_->names.end() && names->second.size() == 1 &&
        ops_.has(names->second[0])) {
      return ops_.number(names->second[0]);
    }
    if (!original_->makers.contains(then)) {
      fail(ErrorKind::Unsupported,
           "a block of the program reads a value that is no longer there; write a .pdmodel");
    }
    return operand_of(then, inputs);
  }

  /// The number that an operand has now. What is no variable of ours is copied with what made it:
  /// lists of tensors, and constants that give attributes.
  std::int64_t operand_of(std::int64_t then, const Renames& inputs) {
    if (then == 0) return 0;
    const auto& names = original_->names.at(then);
    const auto maker = original_->makers.find(then);
    const bool list = maker != original_->makers.end() &&
                      pir::text(original_->ops()[maker->second], "#") == "0.combine";
    if (!list && names.size() == 1) {
      const auto now = inputs.find(names[0]);
      if (now != inputs.end()) return ops_.number(now->second);
    }
    if (list) constants_.erase(then);
    return copied(then, inputs);
  }

  /// Whether an operator without operands makes it, under the name it still has. A loop starts from
  /// that: it has the type that the loop declares, which its value alone may not have, and it is no
  /// parameter, which the loop would let go of.
  bool is_made_alone(std::int64_t then, const Renames& inputs) const {
    const auto names = original_->names.find(then);
    const auto maker = original_->makers.find(then);
    if (names == original_->names.end() || names->second.size() != 1 ||
        maker == original_->makers.end()) {
      return false;
    }
    const Json& op = original_->ops()[maker->second];
    const auto now = inputs.find(names->second[0]);
    return pir::items(op, "I").empty() && pir::text(op, "#") != "1.data" &&
           (now == inputs.end() || now->second == names->second[0]);
  }

  std::int64_t copied(std::int64_t then, const Renames& inputs) {
    if (const auto known = constants_.find(then); known != constants_.end()) return known->second;
    Json json = original_->ops().at(original_->makers.at(then));
    for (Json& operand : json["I"]) {
      operand["%"] = operand_of(pir::integer(operand, "%"), inputs);
    }
    return constants_[then] = ops_.add(std::move(json), {});
  }

  Json whole() {
    Json root = original_ ? original_->root : Json();
    if (!original_) {
      root["base_code"] = {{"magic", "pir"}, {"trainable", true}, {"version", 4}};
      const Json block = {{"#", "block_0"}, {"args", Json::array()}};
      const Json region = {{"#", "region_0"}, {"blocks", Json::array({block})}};
      root["program"]["regions"] = Json::array({region});
    }
    root["program"]["regions"][0]["blocks"][0]["ops"] = ops_.take();
    return root;
  }

  const std::optional<PirOriginal>& original_;
  PirOps ops_;
  std::map<std::int64_t, std::int64_t> constants_;  ///< that were copied, by their old numbers
};

}  // namespace

std::string to_pir(Written& written, const std::optional<PirOriginal>& original) {
  std::string bytes;
  if (!written.program.SerializeToString(&bytes)) {
    fail(ErrorKind::Unsupported, "the program has more than 2 GB");
  }
  Program program = read_desc(std::as_bytes(std::span(bytes)));
  for (Block& block : program.blocks) align_operands(block, written.parameters);
  return PirWriter(written, original).run(program).dump();
}

}  // namespace quench::paddle::write
