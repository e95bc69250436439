// SPDX-License-Identifier: Apache-2.0
// Integer operators as the float operators that they stand for.
#include "retarget/split_qoperators.h"

#include <algorithm>

#include "base/format.h"

namespace quench::retargeting {
namespace {

/// One operator. `inputs` says what they are, in their order:
/// x  integers, their scale and zero point; w  likewise, of a weight
/// o  scale and zero point of the result; b  an int32 bias, on the scale of the products
/// *  x for all that follow
struct QForm {
  std::string_view op_type;
  std::string_view real;
  std::string_view inputs;
};
constexpr QForm kForms[] = {
    {"QLinearConv", "Conv", "xwob"},
    {"QLinearMatMul", "MatMul", "xwo"},
    {"QGemm", "Gemm", "xwbo"},
    {"QLinearAdd", "Add", "xxo"},
    {"QLinearMul", "Mul", "xxo"},
    {"QLinearSigmoid", "Sigmoid", "xo"},
    {"QLinearLeakyRelu", "LeakyRelu", "xo"},
    {"QLinearSoftmax", "Softmax", "xo"},
    {"QLinearAveragePool", "AveragePool", "xo"},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", "xo"},
    {"QLinearConcat", "Concat", "o*"},
};
constexpr std::string_view kToFloat = "MatMulIntegerToFloat";
/// From this version on Softmax works along one axis.
constexpr std::int64_t kSoftmaxAlongAxis = 13;

struct Triple {
  ValueId integers = kNoValue;
  ValueId scale = kNoValue;
  ValueId zero = kNoValue;
};

class Splitter {
 public:
  explicit Splitter(Graph& graph) : graph_(graph) {}

  void run() {
    const std::vector<Node> nodes = std::move(graph_.nodes);
    for (const Node& node : nodes) {
      before_ = written_.size();
      const bool split = node.op_type == kToFloat ? split_product(node) : split_row(node);
      if (split) continue;
      written_.resize(before_);
      written_.push_back(node);
    }
    graph_.nodes = std::move(written_);
  }

 private:
  bool split_row(const Node& node) {
    const auto* form = std::ranges::find(kForms, node.op_type, &QForm::op_type);
    if (form == std::end(kForms) || node.outputs.size() != 1 || !is_plain(node)) return false;
    Node real = renamed(node, form->real);
    Triple out;
    Triple left;
    Triple right;
    std::size_t at = 0;
    for (std::size_t i = 0; i < form->inputs.size(); ++i) {
      const char kind = form->inputs[i];
      if (kind == 'b') {
        const ValueId bias = node.input(at++);
        if (bias == kNoValue) continue;
        const ValueId floats = dequantized_bias(bias, left, right);
        if (floats == kNoValue) return false;
        real.inputs.push_back(floats);
      } else if (kind == 'o') {
        out = {.scale = node.input(at), .zero = node.input(at + 1)};
        at += 2;
      } else {
        const Triple read{node.input(at), node.input(at + 1), node.input(at + 2)};
        at += 3;
        (real.inputs.empty() ? left : right) = read;
        const ValueId floats = dequantized(node, read, kind == 'w');
        if (floats == kNoValue) return false;
        real.inputs.push_back(floats);
        if (kind == '*' && at < node.inputs.size()) --i;
      }
    }
    finish(node, std::move(real), out, left);
    return true;
  }

  /// Its inputs come as a, b, scale of a, scale of b, zero points likewise, float bias.
  bool split_product(const Node& node) {
    const ValueId left = dequantized(node, {node.input(0), node.input(2), node.input(4)}, false);
    const ValueId right = dequantized(node, {node.input(1), node.input(3), node.input(5)}, true);
    if (left == kNoValue || right == kNoValue || node.outputs.size() != 1) return false;
    Node product = renamed(node, "MatMul");
    product.inputs = {left, right};
    if (node.input(6) == kNoValue) {
      written_.push_back(std::move(product));
      return true;
    }
    const ValueId sum = node.outputs[0];
    const ValueId partial = graph_.add_fresh(graph_[sum].name + "_product", graph_[sum].type);
    product.outputs = {partial};
    written_.push_back(std::move(product));
    add("Add", {partial, node.input(6)}, sum);
    return true;
  }

  /// Attributes that the float operator has too, with the same meaning.
  static bool is_plain(const Node& node) {
    if (node.get_int("channels_last", 0) != 0) return false;
    if (node.op_type == "QLinearSoftmax") return node.get_int("opset", 0) >= kSoftmaxAlongAxis;
    return node.op_type != "QGemm" || node.get_float("alpha", 1) == 1;
  }

  static Node renamed(const Node& node, std::string_view real) {
    Node made = node;
    made.op_type = real;
    made.domain.clear();
    made.inputs.clear();
    made.erase("channels_last");
    made.erase("opset");
    return made;
  }

  void add(std::string_view op, std::vector<ValueId> inputs, ValueId output,
           std::int64_t axis = -1) {
    Node node;
    node.op_type = op;
    node.name = format("{}_{}", graph_[output].name, op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    if (axis >= 0) node.set("axis", axis);
    written_.push_back(std::move(node));
  }

  /// Nothing where the scales are not constants.
  ValueId dequantized(const Node& node, const Triple& read, bool weight) {
    const Tensor* scale = graph_.constant(read.scale);
    if (read.integers == kNoValue || scale == nullptr) return kNoValue;
    std::int64_t axis = -1;
    std::vector<ValueId> inputs{read.integers, read.scale};
    const Tensor* zero = graph_.constant(read.zero);
    if (read.zero != kNoValue && zero == nullptr) return kNoValue;
    if (scale->size() > 1) {
      const Tensor* integers = graph_.constant(read.integers);
      if (!weight || integers == nullptr || integers->rank() == 0) return kNoValue;
      const bool rows = node.op_type == "QLinearConv" || node.get_int("transB", 0) != 0;
      axis = rows ? 0 : integers->rank() - 1;
      if (integers->shape()[static_cast<std::size_t>(axis)] != scale->size()) return kNoValue;
    }
    if (zero != nullptr) inputs.push_back(stretched(read.zero, *zero, scale->shape()));
    const ValueId floats = graph_.add_fresh(graph_[read.integers].name + "_DequantizeLinear");
    add("DequantizeLinear", std::move(inputs), floats, axis);
    return floats;
  }

  /// A zero point in the shape of the scale.
  ValueId stretched(ValueId id, const Tensor& zero, const Shape& shape) {
    if (zero.shape() == shape || zero.size() != 1) return id;
    const std::vector<float> numbers(static_cast<std::size_t>(num_elements(shape).value_or(1)),
                                     to_float(zero)[0]);
    return graph_.add_constant(graph_[id].name,
                               convert(Tensor::of<float>(shape, numbers), zero.dtype()));
  }

  ValueId dequantized_bias(ValueId bias, const Triple& x, const Triple& w) {
    const Tensor* left = graph_.constant(x.scale);
    const Tensor* right = graph_.constant(w.scale);
    if (graph_.constant(bias) == nullptr || left == nullptr || left->size() != 1 ||
        right == nullptr) {
      return kNoValue;
    }
    std::vector<float> scale = to_float(*right);
    for (float& each : scale) each *= to_float(*left)[0];
    const Shape shape = scale.size() == 1 ? Shape{} : Shape{std::ssize(scale)};
    const std::string& name = graph_[bias].name;
    const ValueId stored = graph_.add_constant(name + "_scale", Tensor::of<float>(shape, scale));
    const ValueId floats = graph_.add_fresh(graph_[bias].name + "_DequantizeLinear");
    add("DequantizeLinear", {bias, stored}, floats, shape.empty() ? -1 : 0);
    return floats;
  }

  void finish(const Node& node, Node real, const Triple& out, const Triple& left) {
    const ValueId result = node.outputs[0];
    if (out.scale == kNoValue) {  // its result is float
      written_.push_back(std::move(real));
      return;
    }
    ValueId zero = out.zero;
    if (zero == kNoValue) {
      const DType dtype = graph_[left.integers].type.dtype;
      zero = graph_.add_constant(graph_[result].name + "_zero", Tensor::zeros(dtype, {}));
    }
    real.outputs = {graph_.add_fresh(graph_[result].name + "_float")};
    const ValueId floats = real.outputs[0];
    written_.push_back(std::move(real));
    add("QuantizeLinear", {floats, out.scale, zero}, result);
  }

  Graph& graph_;
  std::vector<Node> written_;
  std::size_t before_ = 0;  ///< nodes written when the one in hand began
};

}  // namespace

void split_qoperators(Model& model) { Splitter(model.graph).run(); }

}  // namespace quench::retargeting
