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
    const Block& block = program.blocks.front();
    for (const VarItem& var : block.vars) ops_.declare(var);
    check(block);
    for (const OpItem& op : block.ops) {
      if (const Attr* place = op.find(kPirPlace)) {
        copy(op, static_cast<std::size_t>(std::get<std::int64_t>(place->data)));
      } else {
        ops_.write(op);
      }
    }
    return whole();
  }

 private:
  static bool trainable(const std::optional<PirOriginal>& original) {
    return !original || original->root["base_code"].value("trainable", false);
  }

  void check(const Block& block) const {
    std::set<std::string> unknown;
    for (const OpItem& op : block.ops) {
      if (op.find(kPirPlace) == nullptr && !ops_.knows(op)) unknown.insert(op.type);
    }
    if (unknown.empty()) return;
    fail(ErrorKind::Unsupported, "the form that {} has in PIR is not known; write a .pdmodel",
         fmt::join(unknown, ", "));
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
      operand["%"] = operand_of(pir::integer(operand, "%"), inputs);
    }
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
    if (const auto known = constants_.find(then); !list && known != constants_.end()) {
      return known->second;
    }
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
  align_operands(program.blocks.front(), written.parameters);
  return PirWriter(written, original).run(program).dump();
}

}  // namespace quench::paddle::write
