// SPDX-License-Identifier: Apache-2.0
// Models whose linear layers are split over ranks. `make FOLDER RANKS` writes a small transformer
// block as whole.onnx, its parts as part0.onnx and so on, and as joined.onnx the one part of one
// rank, `open` behind it parts whose results are not gathered; `compare WHOLE PART...` puts
// quantised parts together and holds them against the quantised whole.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "quench/model.h"

namespace {

using quench::DType;
using quench::Model;
using quench::Node;
using quench::Tensor;
using quench::ValueId;
using quench::ValueType;

constexpr std::int64_t kSequence = 8;
constexpr std::int64_t kHidden = 16;
constexpr std::int64_t kInner = 32;
constexpr std::int64_t kHeads = 4;

Tensor noise(const quench::Shape& shape, std::uint32_t seed, float scale) {
  std::minstd_rand generator(seed);
  Tensor result = Tensor::zeros(DType::Float32, shape);
  for (float& element : result.mutable_data<float>()) {
    element = scale * (static_cast<float>(generator() % 2001) / 1000.0F - 1.0F);
  }
  return result;
}

/// The part of a matrix, or of a vector along axis 0, that a rank has.
Tensor part_of(const Tensor& whole, std::size_t axis, std::int64_t ranks, std::int64_t rank) {
  quench::Shape shape = whole.shape();
  shape[axis] /= ranks;
  const std::int64_t first = shape[axis] * rank;
  const std::int64_t columns = whole.shape().back();
  Tensor part = Tensor::zeros(DType::Float32, shape);
  auto to = part.mutable_data<float>().begin();
  const auto from = whole.data<float>();
  for (std::int64_t i = 0; i < whole.size(); ++i) {
    const std::int64_t at = axis + 1 == shape.size() ? i % columns : i / columns;
    if (at >= first && at < first + shape[axis]) *to++ = from[static_cast<std::size_t>(i)];
  }
  return part;
}

/// One block: attention and a perceptron, each with a residual, then a head.
class Block {
 public:
  /// `joins`: with collectives, be it for one rank.
  Block(std::int64_t ranks, std::int64_t rank, bool joins, bool gathered = true)
      : ranks_(ranks), rank_(rank), joins_(joins), gathers_(joins && gathered) {
    model_.ir_version = 8;
    model_.opsets = {{"", 13}, {"com.microsoft", 1}};
    model_.producer_name = "quench tests";
    model_.graph.name = "block";
  }

  Model run() {
    const std::vector<quench::Dim> dims = {{-1, "n"}, {kSequence, ""}, {kHidden, ""}};
    graph().inputs = {graph().add_value(
        {.name = "x", .type = ValueType::tensor(DType::Float32, dims), .declared = true})};
    attention();
    add("Add", {"row_out", "x"}, "attended");
    perceptron();
    head();
    const ValueId out = graph().find("head");
    if (gathers_ || ranks_ == 1) graph()[out].type = ValueType::tensor(DType::Float32, dims);
    graph()[out].declared = gathers_ || ranks_ == 1;
    graph().outputs = {out};
    return std::move(model_);
  }

 private:
  quench::Graph& graph() { return model_.graph; }

  void add(const std::string& op, const std::vector<std::string>& inputs, const std::string& out) {
    std::vector<ValueId> ids;
    for (const std::string& name : inputs) ids.push_back(graph().find(name));
    graph().add_node(op, ids, {out}).name = out + "_node";
  }

  void constant(const std::string& name, Tensor tensor) {
    graph().add_constant(name, std::move(tensor));
  }

  void ints(const std::string& name, const std::vector<std::int64_t>& values) {
    constant(name, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())},
                                            std::span<const std::int64_t>(values)));
  }

  /// `out` = x W + b with W split by columns, where there are ranks.
  void column(const std::string& x, const std::string& out, std::int64_t rows, std::int64_t columns,
              std::uint32_t seed, const std::string& result = {}) {
    constant(out + "_w", part_of(noise({rows, columns}, seed, 0.5F), 1, ranks_, rank_));
    constant(out + "_b", part_of(noise({columns}, seed + 1, 0.2F), 0, ranks_, rank_));
    add("MatMul", {x, out + "_w"}, out + "_product");
    add("Add", {out + "_product", out + "_b"}, result.empty() ? out : result);
  }

  /// Likewise by rows: the ranks' products are summed, then the bias is added.
  void row(const std::string& x, const std::string& out, std::int64_t rows, std::int64_t columns,
           std::uint32_t seed) {
    constant(out + "_w", part_of(noise({rows, columns}, seed, 0.5F), 0, ranks_, rank_));
    constant(out + "_b", noise({columns}, seed + 1, 0.2F));
    add("MatMul", {x, out + "_w"}, out + (joins_ ? "_part" : "_sum"));
    if (joins_) {
      add("AllReduce", {out + "_part"}, out + "_sum");
      graph().nodes.back().domain = "com.microsoft";
    }
    add("Add", {out + "_sum", out + "_b"}, out);
  }

  void heads(const std::string& x, const std::string& out, const std::vector<std::int64_t>& order) {
    add("Reshape", {x, "split_heads"}, out + "_heads");
    add("Transpose", {out + "_heads"}, out);
    graph().nodes.back().set("perm", order);
  }

  void attention() {
    const std::int64_t size = kHidden / kHeads;
    ints("split_heads", {0, 0, kHeads / ranks_, size});
    ints("join_heads", {0, 0, kHidden / ranks_});
    column("x", "query", kHidden, kHidden, 11);
    column("x", "key", kHidden, kHidden, 21);
    column("x", "value", kHidden, kHidden, 31);
    heads("query", "queries", {0, 2, 1, 3});
    heads("key", "keys", {0, 2, 3, 1});
    heads("value", "values", {0, 2, 1, 3});
    add("MatMul", {"queries", "keys"}, "scores");
    add("Softmax", {"scores"}, "shares");
    graph().nodes.back().set("axis", std::int64_t{-1});
    add("MatMul", {"shares", "values"}, "mixed");
    add("Transpose", {"mixed"}, "mixed_back");
    graph().nodes.back().set("perm", std::vector<std::int64_t>{0, 2, 1, 3});
    add("Reshape", {"mixed_back", "join_heads"}, "context");
    row("context", "row_out", kHidden, kHidden, 41);
  }

  void perceptron() {
    column("attended", "up", kHidden, kInner, 51);
    add("Relu", {"up"}, "active");
    row("active", "down", kInner, kHidden, 61);
    add("Add", {"down", "attended"}, "hidden");
  }

  void head() {
    // Its weight is called the same in parts and whole, its result not: that is gathered.
    column("hidden", "head", kHidden, kHidden, 71, gathers_ ? "head_part" : "head");
    if (!gathers_) return;
    add("AllGather", {"head_part"}, "head");
    Node& gather = graph().nodes.back();
    gather.domain = "com.microsoft";
    gather.set("axis", std::int64_t{2});
    gather.set("group_size", ranks_);
  }

  Model model_;
  std::int64_t ranks_;
  std::int64_t rank_;
  bool joins_;
  bool gathers_;
};

/// The integers of a layer's weight, with their scales and zero points.
struct Quantized {
  std::vector<std::int64_t> shape;
  std::vector<float> integers;
  std::vector<float> scale;
  std::vector<float> zero;
  bool operator==(const Quantized&) const = default;
};

struct Summary {
  std::map<std::string, Quantized> weights;               ///< by the name of the float constant
  std::map<std::string, std::pair<float, float>> values;  ///< scale and zero point of activations
};

/// "query_w_quantized" and the like say which constant they were.
std::string stem_of(const std::string& name) {
  const std::size_t end = name.find("_w");
  return end == std::string::npos ? name : name.substr(0, end + 2);
}

Summary summary_of(const Model& model) {
  Summary result;
  const quench::Graph& graph = model.graph;
  for (const Node& node : graph.nodes) {
    const Tensor* scale = graph.constant(node.input(1));
    const Tensor* zero = graph.constant(node.input(2));
    const Tensor* stored = graph.constant(node.input(0));
    if (node.op_type == "DequantizeLinear" && stored != nullptr && stored->rank() == 2) {
      result.weights[stem_of(graph[node.inputs[0]].name)] = {
          .shape = stored->shape(),
          .integers = to_float(convert(*stored, DType::Float32)),
          .scale = to_float(*scale),
          .zero =
              zero == nullptr ? std::vector<float>() : to_float(convert(*zero, DType::Float32))};
    }
    if (node.op_type == "QuantizeLinear" && stored == nullptr) {
      result.values[graph[node.inputs[0]].name] = {
          to_float(*scale)[0], zero == nullptr ? 0 : to_float(convert(*zero, DType::Float32))[0]};
    }
  }
  return result;
}

/// Parts of one weight, put together along the axis in which they are smaller than the whole.
Quantized join(const std::vector<Quantized>& parts, const Quantized& whole) {
  Quantized joined = parts.front();
  const bool columns = joined.shape[1] != whole.shape[1];
  joined.shape = whole.shape;
  joined.integers.assign(whole.integers.size(), -999);
  std::int64_t first = 0;
  for (const Quantized& part : parts) {
    if (columns && &part != &parts.front()) {
      joined.scale.insert(joined.scale.end(), part.scale.begin(), part.scale.end());
      joined.zero.insert(joined.zero.end(), part.zero.begin(), part.zero.end());
    }
    if (!columns && part.scale != joined.scale) throw std::runtime_error("parts have other scales");
    for (std::int64_t i = 0; i < part.shape[0]; ++i) {
      for (std::int64_t j = 0; j < part.shape[1]; ++j) {
        const std::int64_t row = columns ? i : i + first;
        const std::int64_t column = columns ? j + first : j;
        joined.integers.at(static_cast<std::size_t>(row * whole.shape[1] + column)) =
            part.integers[static_cast<std::size_t>(i * part.shape[1] + j)];
      }
    }
    first += part.shape[columns ? 1 : 0];
  }
  // One scale for the tensor is that of every part.
  if (whole.scale.size() == 1 && columns) {
    joined.scale.resize(1);
    joined.zero.resize(whole.zero.size());
  }
  return joined;
}

void compare(const Summary& whole, const std::vector<Summary>& parts) {
  for (const auto& [name, weight] : whole.weights) {
    std::vector<Quantized> found;
    for (const Summary& part : parts) found.push_back(part.weights.at(name));
    if (join(found, weight) != weight) throw std::runtime_error(name + " differs");
  }
  double worst = 0;
  std::size_t values = 0;
  for (const auto& [name, own] : whole.values) {
    for (const Summary& part : parts) {
      const auto other = part.values.find(name);
      if (other == part.values.end()) throw std::runtime_error(name + " has no scale in a part");
      if (other->second != parts.front().values.at(name)) throw std::runtime_error(name);
      // A zero point in the middle between two integers goes either way.
      if (std::abs(other->second.second - own.second) > 1)
        throw std::runtime_error(name + ": zero");
      worst = std::max(worst, std::abs(static_cast<double>(other->second.first / own.first) - 1));
    }
    ++values;
  }
  std::printf("{\"weights\": %zu, \"values\": %zu, \"worst\": %g}\n", whole.weights.size(), values,
              worst);
}

void run(const std::vector<std::string>& words) {
  if (words.at(0) == "make") {
    const std::int64_t ranks = std::stoll(words.at(2));
    save(Block(1, 0, false).run(), words.at(1) + "/whole.onnx");
    save(Block(1, 0, true).run(), words.at(1) + "/joined.onnx");
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      save(Block(ranks, rank, ranks > 1, words.size() < 4).run(),
           words.at(1) + "/part" + std::to_string(rank) + ".onnx");
    }
    return;
  }
  std::vector<Summary> parts;
  for (std::size_t i = 2; i < words.size(); ++i)
    parts.push_back(summary_of(quench::load(words[i])));
  compare(summary_of(quench::load(words.at(1))), parts);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
