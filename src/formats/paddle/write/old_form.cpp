// SPDX-License-Identifier: Apache-2.0
// The form of quantised programs before quantize_linear: a layer reads activations and weights that
// were rounded to integers but are stored as floats, and its result is scaled behind it.
#include <map>
#include <optional>
#include <set>

#include "base/format.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

constexpr float kMost = 127;
constexpr std::int32_t kBits = 8;

std::string argument(const google::protobuf::RepeatedPtrField<OpDesc::Var>& vars,
                     std::string_view name) {
  for (const OpDesc::Var& var : vars) {
    if (var.parameter() == name && var.arguments_size() == 1) return var.arguments(0);
  }
  return {};
}

void replace(google::protobuf::RepeatedPtrField<OpDesc::Var>& vars, const std::string& from,
             const std::string& to) {
  for (OpDesc::Var& var : vars) {
    for (std::string& name : *var.mutable_arguments()) {
      if (name == from) name = to;
    }
  }
}

std::int32_t axis_of(const OpDesc& op) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.name() == "quant_axis") return attr.i();
  }
  return -1;
}

/// Where a dequantised variable comes from.
struct Rounded {
  std::string source;  ///< the activation, or the parameter of integers
  std::string scale;
  std::int32_t axis = -1;
};

class OldForm {
 public:
  explicit OldForm(Written& written) : written_(written) {}

  void run() {
    BlockDesc& block = *written_.program.mutable_blocks(0);
    find_rounded(block);
    for (const OpDesc& op : block.ops()) {
      if (op.type() == "quantize_linear" || op.type() == "dequantize_linear") continue;
      OpDesc copy = op;
      if (const auto found = layer_of(copy)) {
        write_layer(copy, *found);
      } else {
        simulate(copy);
        *ops_.Add() = copy;
      }
    }
    block.mutable_ops()->Swap(&ops_);
    declare(block);
  }

 private:
  void find_rounded(const BlockDesc& block) {
    std::map<std::string, std::string> integers;  // by the variable of integers
    for (const OpDesc& op : block.ops()) {
      const std::string from = argument(op.inputs(), "X");
      const std::string to = argument(op.outputs(), "Y");
      if (op.type() == "quantize_linear") integers[to] = from;
      if (op.type() != "dequantize_linear") continue;
      Rounded& made = rounded_[to];
      made = {from, argument(op.inputs(), "Scale"), axis_of(op)};
      const auto activation = integers.find(from);
      if (activation != integers.end()) made.source = activation->second;
    }
  }

  bool is_weight(const Rounded& made) const { return written_.parameters.contains(made.source); }

  /// The variables of a layer whose weight and input are quantised.
  struct Layer {
    std::string weight;
    std::string input;
  };
  std::optional<Layer> layer_of(const OpDesc& op) const {
    Layer layer;
    for (const OpDesc::Var& var : op.inputs()) {
      for (const std::string& name : var.arguments()) {
        const auto found = rounded_.find(name);
        if (found == rounded_.end()) continue;
        (is_weight(found->second) ? layer.weight : layer.input) = name;
      }
    }
    if (layer.weight.empty() || layer.input.empty()) return std::nullopt;
    return layer;
  }

  /// What is quantised for anything but a layer: rounded and scaled back in one operator.
  void simulate(OpDesc& op) {
    for (OpDesc::Var& var : *op.mutable_inputs()) {
      for (std::string& name : *var.mutable_arguments()) {
        const auto found = rounded_.find(name);
        if (found == rounded_.end()) continue;
        if (is_weight(found->second)) {
          name = expand(found->second);
        } else {
          name = round("fake_quantize_dequantize_moving_average_abs_max", found->second,
                       ".quantized.dequantized");
        }
      }
    }
  }

  /// A weight whose layer reads floats is stored as what it stands for.
  std::string expand(const Rounded& made) {
    Tensor& tensor = written_.parameters.at(made.source);
    if (tensor.dtype() != DType::Int8) return made.source;
    const std::vector<float> reach = to_float(written_.parameters.at(made.scale));
    std::vector<float> values = to_float(tensor);
    std::size_t inner = 1;
    for (std::size_t i = static_cast<std::size_t>(made.axis) + 1;
         made.axis >= 0 && i < tensor.shape().size(); ++i) {
      inner *= static_cast<std::size_t>(tensor.shape()[i]);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] *= reach[made.axis < 0 ? 0 : i / inner % reach.size()] / kMost;
    }
    tensor = Tensor::of<float>(tensor.shape(), std::span<const float>(values));
    return made.source;
  }

  std::string round(const char* type, const Rounded& made, const std::string& suffix) {
    const std::string name = made.source + suffix;
    if (!fresh_.emplace(name, made.source).second) return name;
    Op op(add(type));
    op.in("X", made.source)
        .in("InScale", made.scale)
        .out("Out", name)
        .out("OutScale", made.scale)
        .set("bit_length", kBits)
        .set("is_test", true)
        .set("round_type", 0);
    return name;
  }

  void write_layer(OpDesc& op, const Layer& layer) {
    const Rounded& filter = rounded_.at(layer.weight);
    const Rounded& input = rounded_.at(layer.input);
    const std::string rounded = round("fake_quantize_range_abs_max", input, ".quantized");
    replace(*op.mutable_inputs(), layer.input, rounded);
    replace(*op.mutable_inputs(), layer.weight, filter.source);
    Tensor& integers = written_.parameters.at(filter.source);
    if (integers.dtype() == DType::Int8) integers = convert(integers, DType::Float32);
    const std::string result = op.outputs(0).arguments(0);
    const std::string product = result + ".integers";
    fresh_.emplace(product, result);
    replace(*op.mutable_outputs(), result, product);
    Op(op).set("quantization_type", "qat_with_weight").set("bit_length", kBits);
    *ops_.Add() = op;
    dequantize(filter, input, product, result);
  }

  void dequantize(const Rounded& filter, const Rounded& input, const std::string& from,
                  const std::string& to) {
    if (filter.axis < 0) {
      const float reach = to_float(written_.parameters.at(filter.scale))[0];
      Op(add("fake_dequantize_max_abs"))
          .in("X", from)
          .in("Scale", input.scale)
          .out("Out", to)
          .set("max_range", kMost * kMost / reach);
      return;
    }
    Op(add("fake_channel_wise_dequantize_max_abs"))
        .in("X", from)
        .in("Scales", Names{filter.scale, input.scale})
        .out("Out", to)
        .set("quant_bits", Ints{kBits, kBits})
        .set("quant_axis", filter.axis)
        .set("x_num_col_dims", 1);
  }

  OpDesc& add(const char* type) {
    OpDesc& op = *ops_.Add();
    op.set_type(type);
    return op;
  }

  /// New variables are like what they are made from; integers and zero points are gone.
  void declare(BlockDesc& block) {
    std::map<std::string, VarDesc> known;
    for (const VarDesc& var : block.vars()) known.emplace(var.name(), var);
    for (const auto& [name, like] : fresh_) {
      if (known.contains(name)) continue;
      VarDesc var = known.at(like);
      var.set_name(name);
      known.emplace(name, var);
    }
    const std::set<std::string> used = variables_of(block);
    block.clear_vars();
    for (const auto& [name, var] : known) {
      if (used.contains(name)) *block.add_vars() = var;
    }
    std::erase_if(written_.parameters,
                  [&](const auto& each) { return !used.contains(each.first); });
  }

  Written& written_;
  std::map<std::string, Rounded> rounded_;    ///< by the dequantised variable
  std::map<std::string, std::string> fresh_;  ///< new variables, and what they are like
  google::protobuf::RepeatedPtrField<OpDesc> ops_;
};

}  // namespace

void to_old_form(Written& written) { OldForm(written).run(); }

}  // namespace quench::paddle::write
