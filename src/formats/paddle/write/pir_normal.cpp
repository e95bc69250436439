// SPDX-License-Identifier: Apache-2.0
// Operators that PIR has several of, or in another form.
#include "formats/paddle/write/pir_normal.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "formats/paddle/write/pir_json.h"
#include "formats/paddle/write/pir_ops.h"

namespace quench::paddle::write {
namespace {

bool is_true(const OpItem& op, std::string_view attribute) {
  const Attr* found = op.find(attribute);
  const auto* flag = found == nullptr ? nullptr : std::get_if<bool>(&found->data);
  return flag != nullptr && *flag;
}

void set(OpItem& op, const std::string& name, Attr::Data data) {
  std::erase_if(op.attrs, [&](const Attr& attr) { return attr.name == name; });
  op.attrs.push_back({name, std::move(data)});
}

Argument* input(OpItem& op, std::string_view name) {
  const auto found = std::ranges::find(op.inputs, name, &Argument::name);
  return found == op.inputs.end() || found->variables.empty() ? nullptr : &*found;
}

void fill_constant(OpItem& op) {
  if (const Attr* text = op.find("str_value")) {
    const auto* value = std::get_if<std::string>(&text->data);
    if (value != nullptr && !value->empty()) {
      set(op, "value", std::strtod(value->c_str(), nullptr));
    }
  }
  std::erase_if(op.attrs, [](const Attr& attr) { return attr.name == "str_value"; });
  for (const auto& [from, to] :
       {std::pair("ShapeTensor", "shape"), std::pair("ShapeTensorList", "shape"),
        std::pair("ValueTensor", "value")}) {
    if (Argument* tensor = input(op, from)) {
      tensor->name = to;
      op.type = "full_with_tensor";
    }
  }
}

/// The older product, where it does not scale its result.
void matmul(OpItem& op) {
  const Attr* alpha = op.find("alpha");
  if (alpha != nullptr && numbers_of(alpha->data) != std::vector<double>{1}) return;
  op.type = "matmul_v2";
  set(op, "trans_x", is_true(op, "transpose_X"));
  set(op, "trans_y", is_true(op, "transpose_Y"));
}

/// Numbers of any type stand in one list.
void assign_value(OpItem& op) {
  for (const char* name : {"fp32_values", "int32_values", "int64_values", "bool_values"}) {
    const Attr* list = op.find(name);
    if (list == nullptr) continue;
    std::vector<double> numbers = numbers_of(list->data);
    std::erase_if(op.attrs, [&](const Attr& attr) { return attr.name == name; });
    if (!numbers.empty()) set(op, "values", std::move(numbers));
  }
}

class Aligner {
 public:
  Aligner(Block& block, std::map<std::string, Tensor>& parameters)
      : block_(block), parameters_(parameters) {
    for (const OpItem& op : block.ops) {
      for (const Argument& argument : op.inputs) {
        for (const std::string& name : argument.variables) ++readers_[name];
      }
    }
  }

  void run() {
    std::vector<OpItem> ops = std::exchange(block_.ops, {});
    for (OpItem& op : ops) {
      align(op);
      block_.ops.push_back(std::move(op));
    }
  }

 private:
  void align(OpItem& op) {
    const OpRow* row = find_row(op.type);
    const Attr* axis = op.find("axis");
    Argument* x = input(op, "X");
    Argument* y = input(op, "Y");
    if (row == nullptr || row->attributes != "axis=-1" || x == nullptr || y == nullptr) return;
    if (axis == nullptr || numbers_of(axis->data).at(0) < 0) return;
    const auto at = static_cast<std::int64_t>(numbers_of(axis->data)[0]);
    const std::int64_t first = rank_of(x->variables[0]);
    const std::int64_t second = rank_of(y->variables[0]);
    const std::int64_t behind = std::abs(first - second) - at;
    if (behind > 0) {
      std::string& shorter = (second < first ? y : x)->variables[0];
      shorter = parameters_.contains(shorter) ? reshaped(shorter, behind)
                                              : reshape(shorter, std::min(first, second), behind);
    }
    set(op, "axis", std::int64_t{-1});
  }

  std::int64_t rank_of(const std::string& name) const {
    const auto tensor = parameters_.find(name);
    if (tensor != parameters_.end()) return tensor->second.rank();
    const auto var = std::ranges::find(block_.vars, name, &VarItem::name);
    return var == block_.vars.end() || !var->shape ? 0 : std::ssize(*var->shape);
  }

  static Shape longer(Shape shape, std::int64_t behind) {
    shape.insert(shape.end(), static_cast<std::size_t>(behind), 1);
    return shape;
  }

  /// A parameter with ones behind its axes; one that others read, too, stays as it is.
  std::string reshaped(std::string name, std::int64_t behind) {
    const Tensor aligned =
        parameters_.at(name).reshaped(longer(parameters_.at(name).shape(), behind));
    if (readers_.at(name) > 1) name += "@axis" + std::to_string(behind);
    parameters_[name] = aligned;
    return name;
  }

  std::string reshape(const std::string& from, std::int64_t rank, std::int64_t behind) {
    VarItem var{.name = from + "@axis" + std::to_string(block_.ops.size())};
    const auto like = std::ranges::find(block_.vars, from, &VarItem::name);
    if (like != block_.vars.end()) {
      var.dtype = like->dtype;
      var.shape = longer(like->shape.value_or(Shape()), behind);
    }
    OpItem op{.type = "reshape2"};
    op.inputs = {{"X", {from}}};
    op.outputs = {{"Out", {var.name}}};
    // 0: the size that it has.
    op.attrs = {{"shape", longer(Shape(static_cast<std::size_t>(rank), 0), behind)}};
    block_.vars.push_back(var);
    block_.ops.push_back(std::move(op));
    return var.name;
  }

  Block& block_;
  std::map<std::string, Tensor>& parameters_;
  std::map<std::string, int> readers_;  ///< how many operators read a variable
};

}  // namespace

OpItem normal(OpItem op) {
  if (op.type == "split") {
    const Attr* sections = op.find("sections");
    if ((sections == nullptr || numbers_of(sections->data).empty()) &&
        input(op, "SectionsTensorList") == nullptr) {
      op.type = "split_with_num";
    }
  }
  if (op.type == "tril_triu") op.type = is_true(op, "lower") ? "tril" : "triu";
  if (op.type == "repeat_interleave" && input(op, "RepeatsTensor") != nullptr) {
    op.type = "repeat_interleave_with_tensor_index";
  }
  if (op.type == "fill_constant") fill_constant(op);
  if (op.type == "assign_value") assign_value(op);
  if (op.type == "matmul") matmul(op);
  if (is_true(op, "reduce_all")) {
    set(op, "dim", std::vector<std::int64_t>());
    if (op.type != "logsumexp" && op.type != "reduce_prod") set(op, "reduce_all", false);
  }
  return op;
}

void align_operands(Block& block, std::map<std::string, Tensor>& parameters) {
  Aligner(block, parameters).run();
}

}  // namespace quench::paddle::write
