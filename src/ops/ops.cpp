// SPDX-License-Identifier: Apache-2.0
// The operator table, made from ops.inc.
#include "ops/ops.h"

#include <array>
#include <string>
#include <unordered_map>

namespace quench::ops {

// Several operators share a rule, so some are declared more than once.
// NOLINTBEGIN(readability-redundant-declaration)
#define QUENCH_OP(domain, name, since, min_inputs, max_inputs, rule, ...) void rule(InferContext&);
#include "ops/ops.inc"
#undef QUENCH_OP
// NOLINTEND(readability-redundant-declaration)

namespace {

constexpr auto kOps = std::to_array<OpInfo>({
#define QUENCH_OP(domain, name, since, min_inputs, max_inputs, rule, ...) \
  {domain, #name, since, min_inputs, max_inputs, rule, {__VA_ARGS__}},
#include "ops/ops.inc"
#undef QUENCH_OP
});

using Index = std::unordered_map<std::string_view, const OpInfo*>;

Index make_index(std::string_view domain) {
  Index index;
  for (const OpInfo& op : kOps) {
    if (op.domain == domain) index.emplace(op.name, &op);
  }
  return index;
}

const OpInfo* look_up(const Index& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

/// What a test has added; null: nothing.
const OpInfo* g_extra = nullptr;  // NOLINT: set by the one test that adds an operator

}  // namespace

ExtraOp::ExtraOp(OpInfo row) : row_(row), before_(g_extra) { g_extra = &row_; }

ExtraOp::~ExtraOp() { g_extra = before_; }

int max_outputs(const OpInfo& op) {
  constexpr int kAny = -1;
  static const std::unordered_map<std::string_view, int> kSeveral = {{"Attention", 4},
                                                                     {"BatchNormalization", 5},
                                                                     {"Dropout", 2},
                                                                     {"DynamicQuantizeLinear", 3},
                                                                     {"GRU", 2},
                                                                     {"If", kAny},
                                                                     {"LSTM", 3},
                                                                     {"LayerNormalization", 3},
                                                                     {"Loop", kAny},
                                                                     {"MaxPool", 2},
                                                                     {"RNN", 2},
                                                                     {"Scan", kAny},
                                                                     {"SequenceMap", kAny},
                                                                     {"SoftmaxCrossEntropyLoss", 2},
                                                                     {"Split", kAny},
                                                                     {"StringSplit", 2},
                                                                     {"TopK", 2},
                                                                     {"Unique", 4}};
  const auto found = kSeveral.find(op.name);
  return found == kSeveral.end() ? 1 : found->second;
}

std::span<const OpInfo> all_ops() noexcept { return kOps; }

const OpInfo* find_op(std::string_view domain, std::string_view name) {
  if (g_extra != nullptr && domain == g_extra->domain && name == g_extra->name) return g_extra;
  static const Index kOnnx = make_index("");
  static const Index kMicrosoft = make_index("com.microsoft");
  if (domain.empty() || domain == "ai.onnx") return look_up(kOnnx, name);
  if (domain == "com.microsoft") return look_up(kMicrosoft, name);
  return nullptr;
}

const OpFacts& facts(const Node& node) {
  static constexpr OpFacts kUnknown;
  const OpInfo* op = find_op(node.domain, node.op_type);
  return op == nullptr ? kUnknown : op->facts;
}

}  // namespace quench::ops
