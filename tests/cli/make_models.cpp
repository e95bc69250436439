// SPDX-License-Identifier: Apache-2.0
// Writes the small models that the tests of the program use into a folder.
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <string>

#include "quench/model.h"

namespace {

using quench::DType;
using quench::Model;
using quench::Tensor;
using quench::ValueId;
using quench::ValueType;

Tensor noise(quench::Shape shape, std::uint32_t seed, float scale) {
  std::minstd_rand generator(seed);
  Tensor result = Tensor::zeros(DType::Float32, std::move(shape));
  for (float& element : result.mutable_data<float>()) {
    element = scale * (static_cast<float>(generator() % 2001) / 1000.0F - 1.0F);
  }
  return result;
}

Tensor disturbed(Tensor tensor, float scale) {
  const Tensor extra = noise(tensor.shape(), 99, scale);
  const auto src = extra.data<float>();
  auto dst = tensor.mutable_data<float>();
  for (std::size_t i = 0; i < dst.size(); ++i) dst[i] += src[i];
  return tensor;
}

Model empty_model() {
  Model model;
  model.ir_version = 8;
  model.opsets[""] = 13;
  model.producer_name = "quench tests";
  model.graph.name = "g";
  return model;
}

ValueId add_input(Model& model, const std::string& name, std::vector<quench::Dim> dims) {
  const ValueId id = model.graph.add_value(
      {.name = name, .type = ValueType::tensor(DType::Float32, std::move(dims)), .declared = true});
  model.graph.inputs.push_back(id);
  return id;
}

void add_output(Model& model, ValueId id, std::vector<quench::Dim> dims) {
  model.graph[id].type = ValueType::tensor(DType::Float32, std::move(dims));
  model.graph[id].declared = true;
  model.graph.outputs.push_back(id);
}

/// A classifier of images into 10 classes: Conv, Relu, GlobalAveragePool, Flatten, Gemm.
Model classifier(const quench::Dim& batch, float disturbance, const quench::Dim& height = {8, ""},
                 const quench::Dim& width = {8, ""}) {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const ValueId x = add_input(model, "x", {batch, {3, ""}, height, width});
  const ValueId filters =
      graph.add_constant("filters", disturbed(noise({16, 3, 3, 3}, 1, 1.0F), disturbance));
  graph.add_node("Conv", {x, filters}, {"conv"}).name = "conv_node";
  graph.add_node("Relu", {graph.find("conv")}, {"relu"}).name = "relu_node";
  graph.add_node("GlobalAveragePool", {graph.find("relu")}, {"pooled"}).name = "pool_node";
  graph.add_node("Flatten", {graph.find("pooled")}, {"features"}).name = "flatten_node";
  const ValueId weights = graph.add_constant("weights", noise({16, 10}, 2, 1.0F));
  const ValueId bias = graph.add_constant("bias", noise({10}, 3, 0.1F));
  graph.add_node("Gemm", {graph.find("features"), weights, bias}, {"scores"}).name = "gemm_node";
  add_output(model, graph.find("scores"), {batch, {10, ""}});
  return model;
}

/// A network that takes pixels from 0 to 255 and divides them itself.
Model raw_pixels() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim open{-1, "batch"};
  const ValueId x = add_input(model, "x", {open, {3, ""}, {8, ""}, {8, ""}});
  const ValueId share = graph.add_constant("share", Tensor::of<float>({1}, {1.0F / 255}));
  graph.add_node("Mul", {x, share}, {"scaled"});
  const ValueId filters = graph.add_constant("filters", noise({16, 3, 3, 3}, 1, 1.0F));
  graph.add_node("Conv", {graph.find("scaled"), filters}, {"conv"}).name = "conv_node";
  graph.add_node("GlobalAveragePool", {graph.find("conv")}, {"pooled"});
  graph.add_node("Flatten", {graph.find("pooled")}, {"scores"});
  add_output(model, graph.find("scores"), {open, {16, ""}});
  return model;
}

/// Says the same of every image: what `said`, the rows of a sample, holds.
Model saying(const Tensor& said) {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim open{-1, "batch"};
  const ValueId x = add_input(model, "x", {open, {3, ""}, {8, ""}, {8, ""}});
  graph.add_node("ReduceMean", {x}, {"mean"}).set("axes", std::vector<std::int64_t>{1, 2, 3});
  const ValueId none = graph.add_constant("none", Tensor::of<float>({1}, {0.0F}));
  graph.add_node("Mul", {graph.find("mean"), none}, {"nothing"});
  std::vector<std::int64_t> shape(said.shape().size() + 1, 1);
  shape[0] = -1;
  const ValueId dims =
      graph.add_constant("dims", Tensor::of<std::int64_t>({static_cast<std::int64_t>(shape.size())},
                                                          std::span<const std::int64_t>(shape)));
  graph.add_node("Reshape", {graph.find("nothing"), dims}, {"wide"});
  graph.add_node("Add", {graph.find("wide"), graph.add_constant("said", said)}, {"out"});
  std::vector<quench::Dim> out = {open};
  for (const std::int64_t size : said.shape()) out.push_back({size, ""});
  add_output(model, graph.find("out"), out);
  return model;
}

/// Two boxes; a text of characters 1, 2; a left half of class 0 and a right half of class 1.
Model two_boxes() {
  return saying(Tensor::of<float>({2, 6}, {1, 1, 5, 5, 0.9F, 0, 4, 4, 8, 8, 0.8F, 1}));
}
Model one_text() {
  return saying(Tensor::of<float>({5, 4}, {0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0,  //
                                           0, 0, 1, 0, 1, 0, 0, 0}));
}
Model two_halves() {
  Tensor planes = Tensor::zeros(DType::Float32, {2, 8, 8});
  for (std::size_t i = 0; i < 64; ++i) {
    planes.mutable_data<float>()[(i % 8 < 4 ? 0 : 64) + i] = 1;
  }
  return saying(planes);
}

/// A classifier that only says which class it is: no gradient comes back through that.
Model decided() {
  Model model = classifier({-1, "batch"}, 0);
  quench::Graph& graph = model.graph;
  quench::Node& greatest = graph.add_node("ArgMax", {graph.find("scores")}, {"which"});
  greatest.name = "argmax_node";
  greatest.set("axis", std::int64_t{1});
  graph.add_node("Cast", {graph.find("which")}, {"class"}).set("to", std::int64_t{1});
  graph.outputs.clear();
  add_output(model, graph.find("class"), {{-1, "batch"}, {1, ""}});
  return model;
}

/// Nothing to learn.
Model without_weights() {
  Model model = empty_model();
  const quench::Dim batch{-1, "batch"};
  const ValueId x = add_input(model, "x", {batch, {3, ""}, {8, ""}, {8, ""}});
  model.graph.add_node("Relu", {x}, {"y"}).name = "relu_node";
  add_output(model, model.graph.find("y"), {batch, {3, ""}, {8, ""}, {8, ""}});
  return model;
}

/// Sums of squares of each filter: the variance of its result on images of unit variance.
Tensor variances(const Tensor& filters) {
  Tensor result = Tensor::zeros(DType::Float32, {filters.shape()[0]});
  const auto src = filters.data<float>();
  auto dst = result.mutable_data<float>();
  const std::size_t size = src.size() / dst.size();
  for (std::size_t i = 0; i < src.size(); ++i) dst[i / size] += src[i] * src[i];
  return result;
}

/// A convolution with a channel of zeros, and the BatchNormalization that training on images of
/// mean 0 and variance 1 gives.
Model normalised() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim batch{-1, "batch"};
  const ValueId x = add_input(model, "x", {batch, {3, ""}, {8, ""}, {8, ""}});
  Tensor filters = noise({8, 3, 3, 3}, 1, 1.0F);
  for (float& each : filters.mutable_data<float>().first(27)) each = 0.0F;
  const Tensor spread = variances(filters);
  const ValueId weights = graph.add_constant("filters", std::move(filters));
  graph.add_node("Conv", {x, weights}, {"conv"}).name = "conv_node";
  std::vector<ValueId> inputs = {graph.find("conv")};
  const Tensor ones = Tensor::of<float>({8}, std::vector<float>(8, 1.0F));
  inputs.push_back(graph.add_constant("scale", ones));
  inputs.push_back(graph.add_constant("shift", Tensor::zeros(DType::Float32, {8})));
  inputs.push_back(graph.add_constant("mean", Tensor::zeros(DType::Float32, {8})));
  inputs.push_back(graph.add_constant("variance", spread));
  graph.add_node("BatchNormalization", inputs, {"normal"}).name = "norm_node";
  graph.add_node("Relu", {graph.find("normal")}, {"y"}).name = "relu_node";
  add_output(model, graph.find("y"), {batch, {8, ""}, {6, ""}, {6, ""}});
  return model;
}

/// A block of a mobile network whose 6 channels differ much in size: Conv, a hard-swish that is
/// written out, a depthwise Conv, Relu, Conv.
Model mobile() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim batch{-1, "batch"};
  const ValueId x = add_input(model, "x", {batch, {3, ""}, {8, ""}, {8, ""}});
  const auto number = [&](const char* name, float value) {
    return graph.add_constant(name, Tensor::of<float>({}, {value}));
  };
  Tensor filters = noise({6, 3, 1, 1}, 1, 2.0F);
  Tensor readers = noise({4, 6, 1, 1}, 2, 1.0F);
  auto made = filters.mutable_data<float>();
  auto read = readers.mutable_data<float>();
  for (std::size_t i = 0; i < made.size(); ++i) made[i] *= std::exp2(-static_cast<float>(i / 3));
  for (std::size_t i = 0; i < read.size(); ++i) read[i] *= std::exp2(static_cast<float>(i % 6));
  graph.add_node("Conv", {x, graph.add_constant("a_w", std::move(filters))}, {"a"}).name = "first";
  graph.add_node("Add", {graph.find("a"), number("three", 3)}, {"shifted"}).name = "shift";
  graph.add_node("Clip", {graph.find("shifted"), number("low", 0), number("six", 6)}, {"clipped"})
      .name = "clip";
  graph.add_node("Mul", {graph.find("a"), graph.find("clipped")}, {"product"}).name = "product";
  graph.add_node("Div", {graph.find("product"), graph.find("six")}, {"swish"}).name = "swish_node";
  const ValueId depthwise = graph.add_constant("d_w", noise({6, 1, 3, 3}, 3, 1.0F));
  quench::Node& conv = graph.add_node("Conv", {graph.find("swish"), depthwise}, {"d"});
  conv.name = "depthwise";
  conv.set("group", std::int64_t{6});
  graph.add_node("Relu", {graph.find("d")}, {"r"}).name = "relu";
  const ValueId last = graph.add_constant("y_w", std::move(readers));
  graph.add_node("Conv", {graph.find("r"), last}, {"y"}).name = "last";
  add_output(model, graph.find("y"), {batch, {4, ""}, {6, ""}, {6, ""}});
  return model;
}

/// A constant of 8 GB.
Model huge() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const std::vector<std::int64_t> sides = {2048, 1048576};
  const ValueId shape = graph.add_constant("sides", Tensor::of<std::int64_t>({2}, sides));
  graph.add_node("ConstantOfShape", {shape}, {"y"}).name = "fill";
  add_output(model, graph.find("y"), {{2048, ""}, {1048576, ""}});
  return model;
}

/// Means of images, which are first made larger if so asked.
Model means(float times) {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const std::vector<quench::Dim> image = {{-1, "batch"}, {1, ""}, {2, ""}, {2, ""}};
  ValueId read = add_input(model, "x", image);
  if (times > 1) {
    const ValueId scales =
        graph.add_constant("scales", Tensor::of<float>({4}, {1, 1, times, times}));
    quench::Node& node = graph.add_node("Resize", {read, quench::kNoValue, scales}, {"large"});
    node.name = "resize_node";
    node.set("mode", "nearest");
    node.set("coordinate_transformation_mode", "asymmetric");
    node.set("nearest_mode", "floor");
    read = graph.find("large");
  }
  graph.add_node("GlobalAveragePool", {read}, {"y"});
  add_output(model, graph.find("y"), {{-1, "batch"}, {1, ""}, {1, ""}, {1, ""}});
  return model;
}

/// A Range whose limit is a vector.
Model bad_range() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const auto number = [&](const char* name, float value) {
    return graph.add_constant(name, Tensor::of<float>({}, {value}));
  };
  const ValueId x = add_input(model, "x", {{-1, "n"}});
  graph.add_node("Range", {number("start", 0), x, number("delta", 1)}, {"y"}).name = "count";
  add_output(model, graph.find("y"), {{-1, "m"}});
  return model;
}

/// Two convolutions with names that break careless writers of CSV and HTML.
Model hostile_names() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const ValueId x = add_input(model, "x", {{-1, "n"}, {3, ""}, {8, ""}, {8, ""}});
  const ValueId first = graph.add_constant("w,\"1\"\n<b>", noise({4, 3, 3, 3}, 5, 1.0F));
  graph.add_node("Conv", {x, first}, {"mid,\"dle\""}).name =
      "a,\"b\"/</script><script>alert(1)</script>\xC3\xA9";
  const ValueId second = graph.add_constant("w2", noise({4, 4, 1, 1}, 6, 1.0F));
  graph.add_node("Conv", {graph.find("mid,\"dle\""), second}, {"y"}).name = "conv2_node";
  add_output(model, graph.find("y"), {{-1, "n"}, {4, ""}, {6, ""}, {6, ""}});
  return model;
}

/// One Relu over an image whose size is open, with outputs whose names are no file names.
Model odd_names() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim open{-1, "n"};
  const std::vector<quench::Dim> dims{open, {3, ""}, {-1, "h"}, {-1, "w"}};
  const ValueId x = add_input(model, "in:0", dims);
  graph.add_node("Relu", {x}, {"a/b:0"}).name = "one";
  graph.add_node("Neg", {x}, {"a_b_0"}).name = "two";
  graph.add_node("Abs", {x}, {"../\x1b[31mred"}).name = "three";
  for (const char* name : {"a/b:0", "a_b_0", "../\x1b[31mred"}) {
    add_output(model, graph.find(name), dims);
  }
  return model;
}

/// A body of If: what the outer convolution made, through a weight that only the body knows.
quench::Graph branch(const std::string& name, std::uint32_t seed) {
  quench::Graph body;
  body.name = name;
  const ValueId outer = body.add_value({.name = "mid", .captured = true});
  const ValueId weight = body.add_constant(name + "_w", noise({6, 8, 1, 1}, seed, 1.0F));
  body.add_node("Conv", {outer, weight}, {name + "_y"}).name = name + "_conv";
  body.outputs = {body.find(name + "_y")};
  const std::vector<quench::Dim> dims{{-1, "n"}, {6, ""}, {6, ""}, {6, ""}};
  body[body.outputs[0]].type = ValueType::tensor(DType::Float32, dims);
  body[body.outputs[0]].declared = true;
  return body;
}

/// A convolution, an If whose branches hold one each, and a convolution behind it.
Model branching() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const ValueId x = add_input(model, "x", {{-1, "n"}, {3, ""}, {8, ""}, {8, ""}});
  const ValueId first = graph.add_constant("first_w", noise({8, 3, 3, 3}, 21, 1.0F));
  graph.add_node("Conv", {x, first}, {"mid"}).name = "first_conv";
  graph.add_node("ReduceMax", {x}, {"top"}).set("keepdims", std::int64_t{0});
  const ValueId zero = graph.add_constant("zero", Tensor::of<float>({}, {0.0F}));
  graph.add_node("Greater", {graph.find("top"), zero}, {"positive"});
  quench::Node& node = graph.add_node("If", {graph.find("positive")}, {"chosen"});
  node.name = "choice_node";
  node.set("then_branch", quench::GraphBox(branch("then", 22)));
  node.set("else_branch", quench::GraphBox(branch("else", 23)));
  const ValueId last = graph.add_constant("last_w", noise({4, 6, 3, 3}, 24, 1.0F));
  graph.add_node("Conv", {graph.find("chosen"), last}, {"y"}).name = "last_conv";
  add_output(model, graph.find("y"), {{-1, "n"}, {4, ""}, {4, ""}, {4, ""}});
  return model;
}

/// What a convolution of 8 channels makes of a value; the node has no name.
ValueId conv8(quench::Graph& graph, ValueId x, const std::string& output, std::int64_t channels) {
  const auto seed = static_cast<std::uint32_t>(output.size() * 7 + output.back());
  const ValueId w = graph.add_constant(output + "_w", noise({8, channels, 3, 3}, seed, 0.4F));
  quench::Node& node = graph.add_node("Conv", {x, w}, {output});
  node.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  return node.outputs[0];
}

/// Two blocks with a way around them, a pool between, and a classifier.
Model residual() {
  Model model = empty_model();
  quench::Graph& graph = model.graph;
  const quench::Dim batch{-1, "batch"};
  const auto then = [&](const char* op, std::vector<ValueId> inputs, const std::string& output) {
    return graph.add_node(op, std::move(inputs), {output}).outputs[0];
  };
  ValueId x = add_input(model, "x", {batch, {3, ""}, {8, ""}, {8, ""}});
  x = then("Relu", {conv8(graph, x, "stem", 3)}, "stem_relu");
  for (const std::string block : {"one", "two"}) {
    const ValueId inner = then("Relu", {conv8(graph, x, block + "_a", 8)}, block + "_relu");
    const ValueId sum = then("Add", {conv8(graph, inner, block + "_b", 8), x}, block + "_sum");
    x = then("Relu", {sum}, block + "_out");
    if (block == "two") break;
    quench::Node& pool = graph.add_node("MaxPool", {x}, {"pooled"});
    pool.set("kernel_shape", std::vector<std::int64_t>{2, 2});
    pool.set("strides", std::vector<std::int64_t>{2, 2});
    x = pool.outputs[0];
  }
  x = then("Flatten", {then("GlobalAveragePool", {x}, "mean")}, "features");
  const ValueId weights = graph.add_constant("weights", noise({8, 10}, 2, 1.0F));
  graph.add_node("Gemm", {x, weights}, {"scores"}).name = "gemm_node";
  add_output(model, graph.find("scores"), {batch, {10, ""}});
  return model;
}

/// The classifier with shapes declared wrong, as exporters do: of its output and inside.
Model misdeclared() {
  Model model = classifier({-1, "batch"}, 0);
  quench::Graph& graph = model.graph;
  for (const char* name : {"scores", "relu"}) {
    graph[graph.find(name)].type = ValueType::tensor(DType::Float32, {{{1, ""}, {-1, "seqlen"}}});
    graph[graph.find(name)].declared = true;
  }
  graph[graph.find("scores")].type.shape->pop_back();
  return model;
}

/// A loop of three rounds that stacks its counts, which the body declares as vectors of one.
Model counting() {
  Model model = empty_model();
  quench::Graph body;
  body.name = "body";
  const std::vector<quench::Dim> one{{1, ""}};
  for (const auto& [name, dtype] : {std::pair("i", DType::Int64), std::pair("go", DType::Bool)}) {
    body.inputs.push_back(
        body.add_value({.name = name, .type = ValueType::tensor(dtype, one), .declared = true}));
  }
  body.add_node("Identity", {body.inputs[1]}, {"go_on"});
  body.add_node("Identity", {body.inputs[0]}, {"seen"});
  body.outputs = {body.find("go_on"), body.find("seen")};
  quench::Graph& graph = model.graph;
  const ValueId x = add_input(model, "x", {{1, ""}});
  const ValueId trips = graph.add_constant("trips", Tensor::of<std::int64_t>({}, {3}));
  graph.add_node("Loop", {trips, quench::kNoValue}, {"counts"})
      .set("body", quench::GraphBox(std::move(body)));
  quench::Node& cast = graph.add_node("Cast", {graph.find("counts")}, {"floats"});
  cast.set("to", std::int64_t{1});
  graph.add_node("Add", {graph.find("floats"), x}, {"y"});
  add_output(model, graph.find("y"), {{3, ""}, {1, ""}});
  return model;
}

Model unsupported() {
  Model model = empty_model();
  model.opsets["example.org"] = 1;
  quench::Graph& graph = model.graph;
  const ValueId x = add_input(model, "x", {{2, ""}});
  quench::Node& node = graph.add_node("Frobnicate", {x}, {"y"});
  node.name = "strange_node";
  node.domain = "example.org";
  add_output(model, graph.find("y"), {{2, ""}});
  return model;
}

void write_all(const std::string& dir) {
  const quench::Dim open{-1, "batch"};
  quench::save(classifier(open, 0), dir + "/model.onnx");
  quench::save(classifier(open, 0.05F), dir + "/reference.onnx");
  quench::save(classifier({4, ""}, 0), dir + "/fixed.onnx");
  quench::save(classifier(open, 0, {-1, "h"}, {-1, "w"}), dir + "/sizes.onnx");
  quench::save(classifier({4, ""}, 0, {-1, "h"}, {-1, "w"}), dir + "/fixed_sizes.onnx");
  quench::save(huge(), dir + "/huge.onnx");
  quench::save(means(1), dir + "/means.onnx");
  quench::save(means(4096), dir + "/large_means.onnx");       // 256 MB a sample
  quench::save(means(1 << 20), dir + "/endless_means.onnx");  // 16 TB a sample
  quench::save(bad_range(), dir + "/range.onnx");
  quench::save(mobile(), dir + "/mobile.onnx");
  quench::save(normalised(), dir + "/norm.onnx");
  quench::save(residual(), dir + "/residual.onnx");
  quench::save(raw_pixels(), dir + "/raw_pixels.onnx");
  quench::save(two_boxes(), dir + "/boxes.onnx");
  quench::save(one_text(), dir + "/text.onnx");
  quench::save(two_halves(), dir + "/halves.onnx");
  quench::save(decided(), dir + "/argmax.onnx");
  quench::save(without_weights(), dir + "/relu.onnx");
  quench::save(misdeclared(), dir + "/misdeclared.onnx");
  quench::save(counting(), dir + "/counting.onnx");
  quench::save(odd_names(), dir + "/odd.onnx");
  quench::save(hostile_names(), dir + "/names.onnx");
  quench::save(branching(), dir + "/branch.onnx");
  quench::save(unsupported(), dir + "/unsupported.onnx");
  quench::save(classifier(open, 0), dir + "/external.onnx",
               {.data = quench::SaveOptions::Data::External});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    write_all(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
