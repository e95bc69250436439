// SPDX-License-Identifier: Apache-2.0
// Small models with random shapes, attributes and weights, the same for the same seed.
#include "contract/random_models.h"

#include <algorithm>
#include <random>

#include "base/format.h"

namespace quench::test {
namespace {

/// Builds one model.
class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_(seed) { result_.model.opsets[""] = 17; }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool flip() { return pick(0, 1) == 1; }

  Tensor tensor(const Shape& shape) {
    Tensor result = Tensor::zeros(DType::Float32, shape);
    std::normal_distribution<float> normal;
    std::ranges::generate(result.mutable_data<float>(), [&] { return normal(random_); });
    return result;
  }

  ValueId input(const char* name, const Shape& shape) {
    result_.text += format(" {}={}", name, to_string(shape));
    Value value{.name = name};
    const Tensor data = tensor(shape);
    value.type = ValueType::of(data);
    if (flip()) value.type.shape.reset();  // a model may not know its shapes
    result_.feeds[name] = data;
    const ValueId id = graph().add_value(std::move(value));
    graph().inputs.push_back(id);
    return id;
  }
  ValueId weight(const char* name, const Shape& shape) {
    result_.text += format(" {}={}", name, to_string(shape));
    return graph().add_constant(name, tensor(shape));
  }

  Node& node(const char* op, std::vector<ValueId> inputs, const char* output) {
    result_.text += format(" {}", op);
    return graph().add_node(op, std::move(inputs), {output});
  }
  ValueId last() { return graph().nodes.back().outputs[0]; }

  /// A product of bytes: what is float beside it has kernels that float models have not.
  void beside_bytes(ValueId x, std::int64_t width) {
    graph().add_node("DynamicQuantizeLinear", {x}, {"xq", "xs", "xz"});
    const std::vector<std::int8_t> ones(static_cast<std::size_t>(width), 1);
    const ValueId w = graph().add_constant(
        "wq", Tensor::of<std::int8_t>({width, 1}, std::span<const std::int8_t>(ones)));
    const ValueId q = graph().find("xq");
    node("MatMulInteger", {q, w, graph().find("xz")}, "side");
    graph().outputs.push_back(last());
  }

  /// One of the activations that fast kernels fuse, or none.
  void activation() {
    struct Row {
      const char* op;
      const char* attribute;
    };
    static constexpr Row kRows[] = {{"Relu", ""},     {"LeakyRelu", "alpha"}, {"Sigmoid", ""},
                                    {"Tanh", ""},     {"HardSwish", ""},      {"HardSigmoid", ""},
                                    {"Elu", "alpha"}, {"Clip", ""},           {"Swish", ""},
                                    {"", ""}};
    const Row& row = kRows[pick(0, std::size(kRows) - 1)];
    const std::string op = row.op;
    if (op.empty()) return;
    const ValueId from = last();
    if (op == "Swish") {
      const ValueId gate = node("Sigmoid", {from}, "gate").outputs[0];
      node("Mul", {from, gate}, "swish");
    } else if (op == "Clip") {
      const ValueId low = graph().add_constant("low", Tensor::scalar(-0.5F));
      const ValueId high = graph().add_constant("high", Tensor::scalar(0.75F));
      node("Clip", {from, low, high}, "clipped");
    } else {
      Node& added = node(row.op, {from}, "activated");
      if (*row.attribute != '\0') added.set(row.attribute, 0.3F);
    }
  }

  RandomModel finish() {
    graph().outputs.push_back(last());
    return std::move(result_);
  }

  Graph& graph() { return result_.model.graph; }

 private:
  std::mt19937_64 random_;
  RandomModel result_;
};

using Ints = std::vector<std::int64_t>;

Ints picks(Builder& build, std::size_t count, std::int64_t low, std::int64_t high) {
  Ints result(count);
  std::ranges::generate(result, [&] { return build.pick(low, high); });
  return result;
}

void set_window(Builder& build, Node& node, std::size_t rank, std::int64_t most_pad) {
  if (build.flip()) node.set("strides", picks(build, rank, 1, 2));
  if (build.flip()) node.set("dilations", picks(build, rank, 1, 2));
  switch (build.pick(0, 3)) {
    case 0:
      node.set("auto_pad", std::string("SAME_UPPER"));
      break;
    case 1:
      node.set("auto_pad", std::string("SAME_LOWER"));
      break;
    case 2:
      node.set("pads", picks(build, 2 * rank, 0, most_pad));
      break;
    default:
      break;
  }
}

RandomModel make_conv(std::uint64_t seed) {
  Builder build(seed);
  const auto rank = static_cast<std::size_t>(build.pick(1, 3));
  const bool depthwise = build.flip();
  const std::int64_t groups = depthwise ? build.pick(1, 20) : build.pick(1, 3);
  const std::int64_t in = depthwise ? 1 : build.pick(1, 9);
  const std::int64_t out = groups * build.pick(1, depthwise ? 2 : 9);
  Shape x = {build.pick(1, 3), groups * in};
  Shape w = {out, in};
  const Ints sizes = picks(build, rank, 5, 12);
  const Ints kernel = picks(build, rank, 1, 3);
  x.insert(x.end(), sizes.begin(), sizes.end());
  w.insert(w.end(), kernel.begin(), kernel.end());
  std::vector<ValueId> inputs = {build.input("x", x), build.weight("w", w)};
  if (build.flip()) inputs.push_back(build.weight("b", {out}));
  Node& conv = build.node("Conv", inputs, "y");
  conv.set("group", groups);
  set_window(build, conv, rank, 2);
  if (build.flip()) {
    const ValueId y = build.last();
    const ValueId other = build.node("Relu", {y}, "side").outputs[0];
    build.node("Add", {y, other}, "sum");
  }
  build.activation();
  return build.finish();
}

/// Few channels, many pixels, windows that hang over every border.
RandomModel make_image_conv(std::uint64_t seed) {
  Builder build(seed);
  const std::int64_t channels = build.pick(1, 4);
  const std::int64_t out = build.pick(1, 36);
  const Shape x = {build.pick(1, 2), channels, build.pick(9, 33), build.pick(9, 33)};
  const Shape w = {out, channels, build.pick(1, 5), build.pick(1, 5)};
  std::vector<ValueId> inputs = {build.input("x", x), build.weight("w", w)};
  build.beside_bytes(inputs[0], x[3]);
  if (build.flip()) inputs.push_back(build.weight("b", {out}));
  Node& conv = build.node("Conv", inputs, "y");
  set_window(build, conv, 2, 6);
  if (build.flip()) conv.set("strides", picks(build, 2, 1, 4));
  build.activation();
  return build.finish();
}

RandomModel make_conv_transpose(std::uint64_t seed) {
  Builder build(seed);
  const auto rank = static_cast<std::size_t>(build.pick(1, 3));
  const std::int64_t groups = build.pick(1, 2);
  const std::int64_t in = groups * build.pick(1, 5);
  const std::int64_t out = build.pick(1, 5);
  Shape x = {build.pick(1, 2), in};
  Shape w = {in, out};
  const Ints sizes = picks(build, rank, 3, 7);
  x.insert(x.end(), sizes.begin(), sizes.end());
  w.insert(w.end(), rank, build.pick(2, 4));
  std::vector<ValueId> inputs = {build.input("x", x), build.weight("w", w)};
  if (build.flip()) build.beside_bytes(inputs[0], x.back());
  if (build.flip()) inputs.push_back(build.weight("b", {out * groups}));
  Node& conv = build.node("ConvTranspose", inputs, "y");
  conv.set("group", groups);
  conv.set("strides", Ints(rank, 2));
  if (build.flip()) conv.set("output_padding", picks(build, rank, 0, 1));
  if (build.flip()) conv.set("pads", picks(build, 2 * rank, 0, 1));
  build.activation();
  return build.finish();
}

RandomModel make_matmul(std::uint64_t seed) {
  Builder build(seed);
  const std::int64_t m = build.pick(1, 17), k = build.pick(1, 33), n = build.pick(1, 33);
  Shape a = {m, k};
  Shape b = {k, n};
  for (std::int64_t i = build.pick(0, 2); i > 0; --i) a.insert(a.begin(), build.pick(1, 3));
  const bool constant = build.flip();
  if (a.size() > 2 && build.flip()) b.insert(b.begin(), a.begin(), a.end() - 2);
  const ValueId left = build.input("a", a);
  const ValueId right = constant ? build.weight("b", b) : build.input("b", b);
  build.node("MatMul", {left, right}, "y");
  if (build.flip()) build.node("Add", {build.last(), build.weight("bias", {n})}, "biased");
  build.activation();
  return build.finish();
}

RandomModel make_gemm(std::uint64_t seed) {
  Builder build(seed);
  const std::int64_t m = build.pick(1, 9), k = build.pick(1, 33), n = build.pick(1, 33);
  const bool trans_a = build.flip(), trans_b = build.flip();
  std::vector<ValueId> inputs = {build.input("a", trans_a ? Shape{k, m} : Shape{m, k}),
                                 build.weight("b", trans_b ? Shape{n, k} : Shape{k, n})};
  static const auto kBias = [](std::int64_t which, std::int64_t rows, std::int64_t columns) {
    const Shape shapes[] = {{columns}, {1, columns}, {rows, 1}, {rows, columns}, {}, {1}};
    return shapes[which];
  };
  const std::int64_t which = build.pick(0, 6);
  if (which < 6) inputs.push_back(build.weight("c", kBias(which, m, n)));
  Node& gemm = build.node("Gemm", inputs, "y");
  gemm.set("transA", std::int64_t{trans_a});
  gemm.set("transB", std::int64_t{trans_b});
  if (build.flip()) gemm.set("alpha", 0.5F);
  if (build.flip()) gemm.set("beta", 2.0F);
  build.activation();
  return build.finish();
}

RandomModel make_pool(std::uint64_t seed) {
  Builder build(seed);
  const Shape x = {build.pick(1, 2), build.pick(1, 9), build.pick(6, 12), build.pick(6, 12)};
  const ValueId input = build.input("x", x);
  // A convolution in front gives the pool the memory order that fast kernels use.
  const ValueId w = build.weight("w", {4, x[1], 1, 1});
  const ValueId y = build.node("Conv", {input, w}, "y").outputs[0];
  Node& pool = build.node(build.flip() ? "MaxPool" : "AveragePool", {y}, "pooled");
  pool.set("kernel_shape", picks(build, 2, 2, 3));
  pool.set("strides", picks(build, 2, 1, 3));
  if (build.flip()) pool.set("pads", picks(build, 4, 0, 1));
  if (build.flip()) pool.set("ceil_mode", std::int64_t{1});
  if (pool.op_type == "AveragePool" && build.flip()) {
    pool.set("count_include_pad", std::int64_t{1});
  }
  return build.finish();
}

/// What follows a convolution in real networks: joins, splits, transposes and reductions.
RandomModel make_chain(std::uint64_t seed) {
  Builder build(seed);
  const Shape x = {build.pick(1, 2), 4, build.pick(4, 9), build.pick(4, 9)};
  const ValueId input = build.input("x", x);
  const ValueId a = build.node("Conv", {input, build.weight("w", {8, 4, 3, 3})}, "a").outputs[0];
  const ValueId b = build.node("Conv", {input, build.weight("v", {8, 4, 3, 3})}, "b").outputs[0];
  build.activation();
  const ValueId c = build.last() == b ? b : build.last();
  Node& join = build.node("Concat", {a, c, a}, "joined");
  join.set("axis", build.pick(0, 3));
  const ValueId mean = build.graph().add_constant("two", Tensor::of<float>({1}, {2.0F}));
  build.node("Mul", {build.last(), mean}, "scaled");
  if (build.flip()) {
    build.node("GlobalAveragePool", {build.last()}, "average");
  } else {
    build.node("Transpose", {build.last()}, "turned").set("perm", Ints{0, 2, 3, 1});
    build.node("Softmax", {build.last()}, "soft").set("axis", std::int64_t{-1});
  }
  build.node("Flatten", {build.last()}, "flat");
  return build.finish();
}

/// Elementwise operators on views, which must not write through them.
RandomModel make_views(std::uint64_t seed) {
  Builder build(seed);
  const Shape x = {build.pick(1, 2), 4, build.pick(2, 5), build.pick(2, 5)};
  const ValueId input = build.input("x", x);
  const Tensor flat = Tensor::of<std::int64_t>({3}, {x[0], 4, x[2] * x[3]});
  build.node("Reshape", {input, build.graph().add_constant("shape", flat)}, "flat");
  if (build.flip()) build.node("Transpose", {build.last()}, "turned").set("perm", Ints{0, 2, 1});
  const ValueId view = build.last();
  build.node("Exp", {view}, "grown");
  if (build.flip()) build.node("Mul", {build.last(), view}, "product");
  build.node("Add", {build.last(), build.weight("one", {1})}, "sum");
  build.activation();
  build.node(build.flip() ? "Sub" : "Div", {build.last(), build.weight("two", {1, 1, 1})}, "rest");
  build.node("Identity", {build.last()}, "same");
  return build.finish();
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {{"conv", make_conv},
                                                {"image_conv", make_image_conv},
                                                {"conv_transpose", make_conv_transpose},
                                                {"matmul", make_matmul},
                                                {"gemm", make_gemm},
                                                {"pool", make_pool},
                                                {"chain", make_chain},
                                                {"views", make_views}};
  return kFamilies;
}

}  // namespace quench::test
