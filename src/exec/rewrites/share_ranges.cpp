// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear looks for the least and greatest number before it rounds. Kernels that have
// just written these numbers tell them by one output more, which it takes as its second input.
#include <array>

#include "exec/rewrites/integer.h"
#include "ops/facts.h"
#include "passes/match.h"

namespace quench::exec::rewrites {
namespace {

struct Teller {
  std::string_view op;
  std::size_t output;  ///< that has the range
};
constexpr std::array<Teller, 3> kTellers = {Teller{"MatMulIntegerToFloat", 1},
                                            Teller{"ScaledAttention", 1},
                                            Teller{"LayerNormalization", 3}};

class RangeRule {
 public:
  RangeRule(Rewriter& rewriter, NodeId id) : rewriter_(rewriter), id_(id) {}

  void run() {
    const Node& node = rewriter_.node(id_);
    if (!node.domain.empty() || node.op_type != "DynamicQuantizeLinear") return;
    const NodeId maker = origin(node.inputs[0]);
    if (maker == kNoNode) return;
    for (const Teller& teller : kTellers) {
      if (rewriter_.node(maker).op_type == teller.op) return join(maker, teller.output);
    }
  }

 private:
  /// The node that computes what moves lead to `value`.
  NodeId origin(ValueId value) const {
    for (NodeId maker = rewriter_.maker(value); maker != kNoNode; maker = rewriter_.maker(value)) {
      const Node& node = rewriter_.node(maker);
      if (!ops::is(node, ops::kView)) {  // what hands on all numbers keeps their range
        return node.outputs[0] == value ? maker : kNoNode;
      }
      value = node.inputs[0];
    }
    return kNoNode;
  }

  void join(NodeId maker, std::size_t output) {
    const ValueType& type = rewriter_.graph()[rewriter_.result(maker)].type;
    if (type.dtype != DType::Float32) return;
    Node teller = rewriter_.node(maker);
    if (teller.outputs.size() <= output) {
      teller.domain = kEngineDomain;
      teller.outputs.resize(output, kNoValue);
      const std::string name = rewriter_.graph()[teller.outputs[0]].name + "_range";
      teller.outputs.push_back(rewriter_.add_value(
          name, ValueType::tensor(DType::Float32, std::vector<Dim>{{.value = 2, .symbol = {}}})));
      rewriter_.replace(maker, std::move(teller));
    }
    Node reader = rewriter_.node(id_);
    reader.domain = kEngineDomain;
    reader.inputs.resize(1);
    reader.inputs.push_back(rewriter_.node(maker).outputs[output]);
    rewriter_.replace(id_, std::move(reader));
  }

  Rewriter& rewriter_;
  NodeId id_;
};

}  // namespace

PassReport share_ranges(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) RangeRule(rewriter, id).run();
    }
  });
}

}  // namespace quench::exec::rewrites
