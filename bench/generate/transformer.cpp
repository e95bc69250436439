// SPDX-License-Identifier: Apache-2.0
// The encoder of BERT, as wide and deep as wanted, written out as exporters write it.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "generate/builder.h"

namespace quench::generate {
namespace {

constexpr std::int64_t kHeadSize = 64;
constexpr std::int64_t kBaseHidden = 768;
constexpr std::int64_t kVocabulary = 30522;
constexpr std::int64_t kPositions = 512;
constexpr double kLimit = 0.035;  // a standard deviation of 0.02, as BERT starts with
constexpr std::int64_t kFirstLayerNormalization = 17;

class Bert {
 public:
  Bert(const Options& options, const char* name, std::int64_t hidden, std::int64_t layers)
      : build_(options, name), hidden_(hidden), inner_(4 * hidden), layers_(layers) {}

  Model make() {
    const ValueId ids = build_.input("input_ids", DType::Int64, {-1, -1}, {"N", "S"});
    const ValueId mask = build_.input("attention_mask", DType::Int64, {-1, -1}, {"N", "S"});
    ValueId value = embed(ids);
    const ValueId bias = mask_bias(mask);
    for (std::int64_t index = 0; index < layers_; ++index) value = layer(value, bias);
    build_.output(value, "last_hidden_state", {-1, -1, hidden_}, {"N", "S"});
    return build_.take();
  }

 private:
  ValueId embed(ValueId ids) {
    const ValueId words =
        build_.apply("Gather", {build_.weight({kVocabulary, hidden_}, kLimit), ids});
    const ValueId length = build_.apply("Gather", {build_.apply("Shape", {ids}), build_.ints({1})});
    const ValueId positions = build_.apply("Slice", {build_.weight({kPositions, hidden_}, kLimit),
                                                     build_.ints({0}), length, build_.ints({0})});
    const ValueId sum = build_.apply("Add", {words, positions});
    return norm(build_.apply("Add", {sum, build_.weight({hidden_}, kLimit)}));
  }

  /// 0 where a token counts, a large negative number where it does not, as [N,1,1,S].
  ValueId mask_bias(ValueId mask) {
    Node& cast = build_.node("Cast", {build_.apply("Unsqueeze", {mask, build_.ints({1, 2})})});
    cast.set("to", static_cast<std::int64_t>(DType::Float32));
    const ValueId inverse = build_.apply("Sub", {build_.number(1), cast.outputs.front()});
    return build_.apply("Mul", {inverse, build_.number(-10000)});
  }

  ValueId layer(ValueId value, ValueId bias) {
    const ValueId attended = dense(attention(value, bias), hidden_, hidden_);
    value = norm(build_.apply("Add", {attended, value}));
    const ValueId inner = gelu(dense(value, hidden_, inner_));
    return norm(build_.apply("Add", {dense(inner, inner_, hidden_), value}));
  }

  ValueId attention(ValueId value, ValueId bias) {
    const ValueId query = heads(value, {0, 2, 1, 3});
    const ValueId key = heads(value, {0, 2, 3, 1});
    const ValueId values = heads(value, {0, 2, 1, 3});
    ValueId scores = build_.apply("MatMul", {query, key});
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(kHeadSize)));
    scores = build_.apply("Div", {scores, build_.number(root)});
    Node& softmax = build_.node("Softmax", {build_.apply("Add", {scores, bias})});
    softmax.set("axis", std::int64_t{-1});
    const ValueId mixed = build_.apply("MatMul", {softmax.outputs.front(), values});
    return build_.apply("Reshape", {transpose(mixed, {0, 2, 1, 3}), build_.ints({0, 0, hidden_})});
  }

  /// A projection, cut into heads.
  ValueId heads(ValueId value, const Ints& order) {
    const ValueId cut = build_.apply(
        "Reshape",
        {dense(value, hidden_, hidden_), build_.ints({0, 0, hidden_ / kHeadSize, kHeadSize})});
    return transpose(cut, order);
  }

  ValueId transpose(ValueId value, const Ints& order) {
    Node& added = build_.node("Transpose", {value});
    added.set("perm", order);
    return added.outputs.front();
  }

  ValueId dense(ValueId value, std::int64_t in, std::int64_t out) {
    const ValueId product = build_.apply("MatMul", {value, build_.weight({in, out}, kLimit)});
    return build_.apply("Add", {build_.weight({out}, kLimit), product});
  }

  ValueId gelu(ValueId value) {
    const ValueId scaled =
        build_.apply("Div", {value, build_.number(std::numbers::sqrt2_v<float>)});
    const ValueId raised = build_.apply("Add", {build_.apply("Erf", {scaled}), build_.number(1)});
    return build_.apply("Mul", {build_.apply("Mul", {value, raised}), build_.number(0.5F)});
  }

  ValueId norm(ValueId value) {
    const ValueId scale = build_.spread({hidden_}, 0.8, 1.2);
    const ValueId bias = build_.weight({hidden_}, 0.1);
    if (build_.opset() < kFirstLayerNormalization) return written_out_norm(value, scale, bias);
    Node& added = build_.node("LayerNormalization", {value, scale, bias});
    added.set("axis", std::int64_t{-1});
    added.set("epsilon", 1e-12F);
    return added.outputs.front();
  }

  ValueId written_out_norm(ValueId value, ValueId scale, ValueId bias) {
    const ValueId centred = build_.apply("Sub", {value, mean(value)});
    const ValueId square = build_.apply("Pow", {centred, build_.number(2)});
    const ValueId variance = build_.apply("Add", {mean(square), build_.number(1e-12F)});
    const ValueId unit = build_.apply("Div", {centred, build_.apply("Sqrt", {variance})});
    return build_.apply("Add", {build_.apply("Mul", {unit, scale}), bias});
  }

  ValueId mean(ValueId value) {
    Node& added = build_.node("ReduceMean", {value});
    added.set("axes", Ints{-1});
    return added.outputs.front();
  }

  Builder build_;
  std::int64_t hidden_;
  std::int64_t inner_;
  std::int64_t layers_;
};

}  // namespace

Model bert_base(const Options& options) {
  return Bert(options, "bert-base", kBaseHidden, options.layers).make();
}

Model transformer(const Options& options) {
  const std::int64_t hidden = options.hidden;
  const std::int64_t wanted = options.size_mb * 1'000'000 / 4;  // numbers
  const std::int64_t layer = 12 * hidden * hidden;
  const std::int64_t tables = (kVocabulary + kPositions) * hidden;
  const std::int64_t layers = std::max<std::int64_t>(1, (wanted - tables + layer / 2) / layer);
  return Bert(options, "transformer", hidden, layers).make();
}

}  // namespace quench::generate
