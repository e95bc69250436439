// SPDX-License-Identifier: Apache-2.0
// Turns the older ways in which Paddle stores quantisation into its newer one: integer weights with
// a dequantize_linear, activations with a quantize_linear and a dequantize_linear.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "formats/paddle/program.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

constexpr std::string_view kStepSuffix = "_quant_scale";

const std::string* only(const std::vector<Argument>& arguments, std::string_view name,
                        std::size_t index = 0) {
  const auto found = std::ranges::find(arguments, name, &Argument::name);
  if (found == arguments.end() || index >= found->variables.size()) return nullptr;
  return &found->variables[index];
}

std::int64_t integer(const OpItem& op, std::string_view name, std::int64_t otherwise) {
  const Attr* attr = op.find(name);
  const auto* value = attr == nullptr ? nullptr : std::get_if<std::int64_t>(&attr->data);
  return value == nullptr ? otherwise : *value;
}

/// Whether it rounds activations to integers that it hands on as floats.
bool rounds(const OpItem& op) {
  return op.type == "fake_quantize_range_abs_max" ||
         op.type == "fake_quantize_moving_average_abs_max" || op.type == "fake_quantize_abs_max";
}

bool scales_back(const OpItem& op) {
  return op.type == "fake_channel_wise_dequantize_max_abs" || op.type == "fake_dequantize_max_abs";
}

/// How a weight is stored.
struct WeightNote {
  std::string scale;            ///< the variable of its scales, or
  std::vector<double> largest;  ///< the scales themselves
  std::int64_t axis = -1;
  std::int64_t bits = 8;
  int index = 0;  ///< of the operator that tells it
};

class Unifier {
 public:
  explicit Unifier(Block& block) : block_(block) {
    for (const VarItem& var : block.vars) {
      if (var.parameter) parameters_.insert(var.name);
    }
  }

  void run() {
    for (std::size_t i = 0; i < block_.ops.size(); ++i) note(block_.ops[i]);
    std::vector<OpItem> ops;
    for (OpItem& op : block_.ops) {
      use_weights(op, ops);
      if (rounds(op) || op.type == "fake_quantize_dequantize_moving_average_abs_max") {
        add_pair(op, ops);
      } else if (scales_back(op)) {
        ops.push_back({.type = "moving_average_abs_max_scale",
                       .inputs = {{"X", {required(op.inputs, "X")}}},
                       .outputs = {{"Out", {required(op.outputs, "Out")}}},
                       .attrs = {},
                       .index = op.index});
      } else {
        ops.push_back(std::move(op));
      }
    }
    block_.ops = std::move(ops);
  }

 private:
  static std::string required(const std::vector<Argument>& arguments, std::string_view name) {
    const std::string* found = only(arguments, name);
    if (found == nullptr) {
      fail(ErrorKind::BadModel, "an operator that quantises has no '{}'", name);
    }
    return *found;
  }

  /// The parameter that a layer multiplies by, or null.
  const std::string* weight_of(const OpItem& op) const {
    for (const std::string_view name : {"Filter", "Y"}) {
      const std::string* found = only(op.inputs, name);
      if (found != nullptr && parameters_.contains(*found)) return found;
    }
    return nullptr;
  }

  void note(const OpItem& op) {
    for (const Argument& output : op.outputs) {
      for (const std::string& variable : output.variables) makers_[variable] = &op;
    }
    if (scales_back(op)) note_scales(op);
    note_steps(op);
  }

  void note_scales(const OpItem& op) {
    const auto maker = makers_.find(required(op.inputs, "X"));
    const std::string* weight = maker == makers_.end() ? nullptr : weight_of(*maker->second);
    if (weight == nullptr) {
      fail(ErrorKind::Unsupported,
           "operator {}, '{}', does not follow a layer whose weight is a parameter", op.index,
           op.type);
    }
    WeightNote note;
    note.index = op.index;
    if (op.type == "fake_channel_wise_dequantize_max_abs") {
      note.scale = required(op.inputs, "Scales");
      note.axis = integer(op, "quant_axis", 0);
      const Attr* bits = op.find("quant_bits");
      const auto* list =
          bits == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(&bits->data);
      if (list != nullptr && !list->empty()) note.bits = list->front();
    } else {
      const Attr* range = op.find("max_range");
      const auto* value = range == nullptr ? nullptr : std::get_if<double>(&range->data);
      if (value == nullptr || !(*value > 0)) fail(ErrorKind::BadModel, "it has no max_range");
      constexpr double kLargest = 127;
      note.largest = {kLargest * kLargest / *value};
    }
    weights_[*weight] = std::move(note);
  }

  /// Weights alone are quantised: the layer's attributes hold their steps.
  void note_steps(const OpItem& op) {
    for (const Attr& attr : op.attrs) {
      if (!attr.name.ends_with(kStepSuffix)) continue;
      const std::string name = attr.name.substr(0, attr.name.size() - kStepSuffix.size());
      const auto* steps = std::get_if<std::vector<double>>(&attr.data);
      if (!parameters_.contains(name) || steps == nullptr || steps->empty()) continue;
      WeightNote note;
      note.index = op.index;
      note.bits = integer(op, "quantize_weight_bits", 8);
      const auto largest = static_cast<double>(
          (std::int64_t{1} << (std::clamp<std::int64_t>(note.bits, 2, 16) - 1)) - 1);
      for (const double step : *steps) note.largest.push_back(step * largest);
      const bool convolution = op.type.find("conv") != std::string::npos;
      note.axis = steps->size() == 1 ? -1 : convolution ? 0 : 1;
      weights_[name] = std::move(note);
    }
  }

  /// Puts a dequantize_linear before the first layer that reads a weight of these.
  void use_weights(OpItem& op, std::vector<OpItem>& ops) {
    const std::string* weight = scales_back(op) || rounds(op) ? nullptr : weight_of(op);
    if (weight == nullptr || !weights_.contains(*weight)) return;
    const std::string name = *weight;
    const std::string floats = name + ".dequantized";
    if (done_.insert(name).second) {
      const WeightNote& note = weights_.at(name);
      std::string scale = note.scale;
      if (scale.empty()) scale = add_scale(name, note, ops);
      ops.push_back({.type = "dequantize_linear",
                     .inputs = {{"X", {name}}, {"Scale", {scale}}},
                     .outputs = {{"Y", {floats}}},
                     .attrs = {{"quant_axis", note.axis}, {"bit_length", note.bits}},
                     .index = note.index});
      declare_as(floats, name);
    }
    for (Argument& input : op.inputs) {
      std::ranges::replace(input.variables, name, floats);
    }
  }

  static std::string add_scale(const std::string& name, const WeightNote& note,
                               std::vector<OpItem>& ops) {
    std::string scale = name + "@scale";
    ops.push_back({.type = "assign_value",
                   .inputs = {},
                   .outputs = {{"Out", {scale}}},
                   .attrs = {{"shape", std::vector<std::int64_t>{std::ssize(note.largest)}},
                             {"dtype", std::int64_t{5}},
                             {"fp32_values", note.largest}},
                   .index = note.index});
    return scale;
  }

  void declare_as(const std::string& name, const std::string& like) {
    const auto found = std::ranges::find(block_.vars, like, &VarItem::name);
    if (found == block_.vars.end()) return;
    VarItem var = *found;
    var.name = name;
    var.dtype = DType::Float32;
    var.parameter = false;
    block_.vars.push_back(std::move(var));
  }

  void add_pair(const OpItem& op, std::vector<OpItem>& ops) {
    const std::string x = required(op.inputs, "X");
    const std::string out = required(op.outputs, "Out");
    std::string scale;
    if (const std::string* given = only(op.inputs, "InScale")) {
      scale = *given;
    } else {
      scale = out + "@scale";
      ops.push_back({.type = "abs",
                     .inputs = {{"X", {x}}},
                     .outputs = {{"Out", {scale + ".abs"}}},
                     .attrs = {},
                     .index = op.index});
      ops.push_back({.type = "reduce_max",
                     .inputs = {{"X", {scale + ".abs"}}},
                     .outputs = {{"Out", {scale}}},
                     .attrs = {{"reduce_all", true}},
                     .index = op.index});
    }
    const std::string whole = out + ".integer";
    const std::vector<Attr> attrs{{"quant_axis", std::int64_t{-1}},
                                  {"bit_length", integer(op, "bit_length", 8)}};
    ops.push_back({.type = "quantize_linear",
                   .inputs = {{"X", {x}}, {"Scale", {scale}}},
                   .outputs = {{"Y", {whole}}},
                   .attrs = attrs,
                   .index = op.index});
    ops.push_back({.type = "dequantize_linear",
                   .inputs = {{"X", {whole}}, {"Scale", {scale}}},
                   .outputs = {{"Y", {out}}},
                   .attrs = attrs,
                   .index = op.index});
  }

  Block& block_;
  std::set<std::string> parameters_;
  std::map<std::string, const OpItem*> makers_;
  std::map<std::string, WeightNote> weights_;
  std::set<std::string> done_;
};

}  // namespace

void unify_quantization(Program& program) {
  for (Block& block : program.blocks) Unifier(block).run();
}

}  // namespace quench::paddle
