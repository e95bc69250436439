// SPDX-License-Identifier: Apache-2.0
// A graph that is trained: its weights are leaves, its operators run in their reference form with
// gradients, and values and weights are fake-quantised where the plan says so.
#pragma once

#include <map>
#include <random>
#include <set>
#include <unordered_map>

#include "exec/engine/device.h"
#include "exec/engine/kernel.h"
#include "qat/engine/shards.h"
#include "qat/engine/torch.h"
#include "qat/train.h"
#include "quench/plan.h"
#include "quench/quanter.h"

namespace quench::qat {

/// Makes the quanter of an activation (by name) or of a weight (by the name of its constant).
using MakeQuanter = std::function<std::unique_ptr<Quanter>(
    const std::string& op_type, const std::string& name, const QuanterSetup& setup)>;

using Tensors = std::map<std::string, at::Tensor>;

/// Runs of one program must not overlap.
class Program {
 public:
  /// Nodes that cannot run, by name, are an Error(Unsupported). `solution` may be empty: quanters
  /// then begin with the first batches. `shards`: the ranks that have the other parts of the model;
  /// null: it is whole.
  Program(const Model& model, const QuantPlan& plan, const QuantSolution& solution,
          const MakeQuanter& make_quanter, const exec::Placement& place = {},
          Shards shards = nullptr);

  /// Computes `wanted` from `feeds`: inputs, or values in the middle of the graph. Values are as
  /// their readers see them.
  std::vector<at::Tensor> run(const Tensors& feeds, const std::vector<std::string>& wanted);

  /// Off: in float, as the model that is trained was.
  void quantize(bool on) noexcept { quantizes_ = on; }
  /// Likewise for activations alone.
  /// From now on so large a share of every activation's elements stays in float, by chance.
  void drop(double share) noexcept { drop_ = share; }
  void seed(std::uint64_t seed) { random_.seed(seed); }
  /// In training quanters move their ranges.
  void train(bool on);

  /// From now on these layers normalise with the statistics of each batch while training, with
  /// weights quantised as they will be when the running statistics are folded into them. Those of
  /// which `start` holds other weights than folding gave (equalisation) are left folded.
  void keep_norms(const std::vector<FoldedNorm>& norms);
  /// From now on they keep their running statistics, folded into weights and biases.
  void freeze_norms() noexcept { frozen_ = true; }

  /// Weights by the name of their constants, then what quanters learn.
  std::vector<Trained> weights() const;
  /// Likewise for Adam, whose rate is relative to a tensor's size: quantised weights move by a
  /// share of the distance between two integers instead, which is what a change must get over.
  std::vector<Trained> weights_by_scale() const;
  std::vector<Trained> quanter_parameters() const;
  /// Everything that makes up the state, in a fixed order.
  std::vector<at::Tensor> state() const;
  const Graph& graph() const noexcept { return graph_; }
  const QuantPlan& plan() const noexcept { return plan_; }
  const exec::Placement& place() const noexcept { return place_; }

  /// The float model with its weights as they stand; they have the names that they had.
  Model float_model() const;
  /// Scales and zero points as they stand.
  QuantSolution solution() const;
  /// The quanter of a weight; null where it is not quantised.
  Quanter* quanter_of(const WeightKey& key);
  /// Puts another in its place.
  void replace_quanter(const WeightKey& key, std::unique_ptr<Quanter> quanter);
  /// The quanter of an activation; null where it is not quantised.
  Quanter* quanter_of(const std::string& value);
  /// The weights of the nodes between `feeds` and `wanted`.
  std::vector<WeightKey> weights_between(const std::set<std::string>& feeds,
                                         const std::vector<std::string>& wanted) const;
  std::vector<std::string> values_between(const std::set<std::string>& feeds,
                                          const std::vector<std::string>& wanted) const;
  /// The leaf of a constant; undefined where it is not trained.
  at::Tensor leaf(const std::string& constant) const;
  /// The name of the constant that a weight is.
  std::string constant_of(const WeightKey& key) const;
  /// The leaves of the biases of layers.
  std::vector<at::Tensor> biases_of(const std::vector<WeightKey>& keys) const;
  /// Names of nodes on the way from weights to `wanted` that hand on no gradient, after a run.
  void check_gradients(const Tensors& feeds, const std::vector<std::string>& wanted);

 private:
  struct Step {
    exec::KernelFunction run;
    std::vector<int> in;  ///< slots; weights and biases of the plan have slots of their own
    std::vector<int> out;
    std::string label;
    std::size_t node = 0;
    bool there = false;  ///< runs where `place_` says
  };
  struct Weight {
    WeightKey key;
    ValueId constant = kNoValue;
    int slot = -1;
    std::unique_ptr<Quanter> quanter;
  };
  struct Bias {
    std::size_t weight = 0;  ///< of `weights_`
    std::string input;       ///< the activation whose scale it shares
    ValueId constant = kNoValue;
    int slot = -1;
  };
  /// Batch normalisation behind a weight's layer, in units of the folded weight.
  struct Norm {
    std::size_t weight = 0;
    ValueId bias = kNoValue;  ///< the constant that it is folded into
    at::Tensor scale;         ///< learned
    at::Tensor shift;         ///< learned
    at::Tensor mean;          ///< running
    at::Tensor variance;      ///< running
    at::Tensor epsilon;
    at::Tensor factor() const { return scale / at::sqrt(variance + epsilon); }
  };
  /// What one pair of feeds and wanted values needs.
  struct Schedule {
    std::vector<std::size_t> steps;
    std::vector<std::vector<int>> release;
    std::vector<std::size_t> weights;
    std::vector<std::size_t> biases;
  };

  void make_leaves();
  void plan_weights(const QuantSolution& solution, const MakeQuanter& make_quanter);
  void plan_values(const QuantSolution& solution, const MakeQuanter& make_quanter);
  void add_steps();
  void plan_bias(const Node& node, const std::string& name);
  Schedule make_schedule(const std::vector<int>& fed, const std::vector<int>& wanted) const;
  const Schedule& schedule(const std::vector<int>& fed, const std::vector<int>& wanted);
  void prepare_weights(const Schedule& schedule);
  at::Tensor quantized_bias(const Bias& bias, const at::Tensor& real);
  at::Tensor bias_for(const Bias& bias);
  void normalize_outputs(const Step& step);
  void quantize_outputs(const Step& step);
  at::Tensor placed(const at::Tensor& tensor, bool there) const;
  bool normalizes() const noexcept { return training_ && !frozen_; }
  const Norm* norm_of(std::size_t weight) const;
  at::Tensor folded_weight(std::size_t weight) const;
  at::Tensor folded_bias(const Norm& norm) const;
  void normalize(const Norm& norm, at::Tensor& value);
  void run_step(const Step& step);
  int slot_of(const std::string& value) const;
  Quanter* quanter_at(int slot);

  Shards shards_;
  Model model_;  ///< as it was given, for `float_model`
  Graph graph_;  ///< whose trained constants are leaves
  QuantPlan plan_;
  exec::Placement place_;  ///< of floats between steps, and of what is learned
  std::vector<at::Tensor> slots_;
  std::map<ValueId, at::Tensor> leaves_;
  std::vector<Step> steps_;
  std::vector<int> producer_;  ///< by slot: a step, or -1
  std::vector<Weight> weights_;
  std::vector<Bias> biases_;
  std::vector<Norm> norms_;
  bool training_ = true;
  bool frozen_ = false;
  std::map<std::string, std::unique_ptr<Quanter>> values_;  ///< by the value whose scale it is
  std::vector<Quanter*> value_quanter_;                     ///< by slot
  std::map<std::pair<std::vector<int>, std::vector<int>>, Schedule> schedules_;
  double drop_ = 0;
  std::mt19937_64 random_;
  bool quantizes_ = true;
};

}  // namespace quench::qat
