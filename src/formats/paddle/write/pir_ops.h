// SPDX-License-Identifier: Apache-2.0
// PIR's operators while they are written, and the numbers of their values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/paddle/write/pir_form.h"
#include "formats/paddle/write/pir_json.h"
#include "quench/tensor.h"

namespace quench::paddle::write {

/// PIR broadcasts from the last axis only: gives what is aligned by an attribute its shape.
void align_operands(Block& block, std::map<std::string, Tensor>& parameters);

class PirOps {
 public:
  PirOps(const std::map<std::string, Tensor>& parameters, bool trainable);

  void declare(const VarItem& var) { vars_[var.name] = var; }
  /// Whether an operator has a form.
  bool knows(const OpItem& op) const;
  void write(const OpItem& op);
  /// Adds an operator whose operands have their numbers, and numbers its results, which are these
  /// variables. Gives the number of the first result.
  std::int64_t add(Json op, const std::vector<std::vector<std::string>>& made);
  std::int64_t number(const std::string& variable) const;
  bool has(const std::string& variable) const { return numbers_.contains(variable); }
  /// A number for a value inside an operator, and for one that a region takes.
  std::int64_t fresh() { return next_++; }
  std::int64_t fresh_argument() { return argument_--; }
  Json take() { return std::move(ops_); }

  /// What is known of a block, beside the operators that it has so far.
  struct Scope {
    Json ops = Json::array();
    std::map<std::string, VarItem> vars;
    std::map<std::string, std::int64_t> numbers;
  };
  /// Begins a block inside; gives what `leave` wants.
  Scope enter();
  /// Ends it; gives its operators.
  Json leave(Scope outer);
  /// A variable that a region takes, as the region's list has it.
  Json argument(const std::string& variable);
  /// What a region gives.
  void yield(const std::vector<std::string>& variables);
  /// An operator with regions.
  void write_regions(std::string_view name, const std::vector<std::string>& operands,
                     const std::vector<std::string>& made, Json regions);

 private:
  void write_parameter(const std::string& name, const Tensor& tensor);
  void write_port(const OpItem& op);
  void write_form(const OpItem& op, const PirForm& form);
  std::int64_t given(const OpItem& op, const PirForm& form, std::string_view token);
  std::int64_t constant(const PirItem& item, const Attr::Data& data);
  std::int64_t combined(const std::vector<std::string>& variables);
  Json type_of(const std::string& variable) const;
  std::int64_t add(std::string_view name, const std::vector<std::int64_t>& operands,
                   Json attributes, const Json& types,
                   const std::vector<std::vector<std::string>>& made);

  const std::map<std::string, Tensor>& parameters_;
  bool trainable_;
  Json ops_ = Json::array();
  std::map<std::string, VarItem> vars_;
  std::map<std::string, std::int64_t> numbers_;
  std::int64_t next_ = 1;
  std::int64_t argument_ = -1;
};

}  // namespace quench::paddle::write
