// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's QAT in C++: a trainable model for a loop of your own. Needs libtorch's headers, and
// a program that links libtorch; the rest of Quench does not.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quench/preprocess.h"
#include "quench/ptq.h"
#include "quench/quanted_layer.h"
#include "quench/quanters.h"
#include "quench/trainable.h"

namespace quench {

/// PaddleSlim's configuration of training, with its names and defaults.
struct QatConfig {
  /// Rules, target, layers to leave out. Where it takes an observer it takes a quanter, by a name
  /// of `quench list quanters`, PaddleSlim's, or one of `custom_quanters`.
  QuantConfig config;
  std::map<std::string, QuanterFactory> custom_quanters;
  std::string weight_preprocess_type;      ///< "" or PACT
  std::string activation_preprocess_type;  ///< "" or PACT
  std::string weight_quantize_type = "channel_wise_abs_max";
  std::string activation_quantize_type = "moving_average_abs_max";
  int weight_bits = 8;
  int activation_bits = 8;
  double moving_rate = 0.9;
  std::int64_t window_size = 10000;
  std::vector<std::string> quantizable_layer_type = {"Conv2D", "Linear"};
};

/// `QAT qat(config); auto model = qat.quantize(load(path));` then a loop of your own, then
/// `qat.save_quantized_model(model, path)`.
class QAT {
 public:
  explicit QAT(QatConfig config = {}, PreprocessFactory weight_preprocess = {},
               PreprocessFactory act_preprocess = {}, QuanterFactory weight_quantize = {},
               QuanterFactory act_quantize = {}, Context context = {})
      : config_(std::move(config)),
        weight_preprocess_(std::move(weight_preprocess)),
        act_preprocess_(std::move(act_preprocess)),
        weight_quantize_(std::move(weight_quantize)),
        act_quantize_(std::move(act_quantize)),
        context_(std::move(context)) {}

  /// Layers of type `source`, a layer of Paddle or an operator, become `target`, whether or not
  /// `quantizable_layer_type` has them. Those that are split over ranks have types of their own.
  /// The last call for a type holds.
  void add_qat_layer_mapping(const std::string& source, const QuantedLayer& target) {
    std::vector<std::string> types = QuantedLayer::op_types_of_layer(source);
    if (types.empty()) types.push_back(source);
    for (const std::string& type : types) mapping_.insert_or_assign(type, target);
  }

  TrainableModel quantize(const Model& model) const;
  void save_quantized_model(const TrainableModel& model, const std::string& path,
                            const InputShapes& input_spec = {}) const {
    quench::save_quantized_model(model.convert(), path, input_spec);
  }

 private:
  std::unique_ptr<Quanter> make(const std::string& op_type, QuanterSetup setup) const;
  std::string type_of(const QuanterSetup& setup) const;

  QatConfig config_;
  PreprocessFactory weight_preprocess_;
  PreprocessFactory act_preprocess_;
  QuanterFactory weight_quantize_;
  QuanterFactory act_quantize_;
  Context context_;
  std::map<std::string, QuantedLayer> mapping_;  ///< by type of operator
};

inline std::string QAT::type_of(const QuanterSetup& setup) const {
  const std::string& before =
      setup.is_weight ? config_.weight_preprocess_type : config_.activation_preprocess_type;
  if (!before.empty()) return before;  // PACT clips and quantises
  if (is_quanter(setup.spec.observer)) return setup.spec.observer;
  return setup.is_weight ? config_.weight_quantize_type : config_.activation_quantize_type;
}

inline std::unique_ptr<Quanter> QAT::make(const std::string& op_type, QuanterSetup setup) const {
  setup.moving_rate = config_.moving_rate;
  setup.window_size = config_.window_size;
  const auto mapped = mapping_.find(op_type);
  QuanterFactory factory = setup.is_weight ? weight_quantize_ : act_quantize_;
  const auto custom = config_.custom_quanters.find(setup.spec.observer);
  if (custom != config_.custom_quanters.end()) factory = custom->second;
  if (mapped != mapping_.end()) {
    const QuanterFactory& own = setup.is_weight ? mapped->second.weight : mapped->second.activation;
    if (own) factory = own;
  }
  std::unique_ptr<Quanter> quanter =
      factory ? factory(setup) : built_in_quanters(context_)(type_of(setup), setup);
  const PreprocessFactory& before = setup.is_weight ? weight_preprocess_ : act_preprocess_;
  if (!before) return quanter;
  return std::make_unique<PreprocessedQuanter>(before(), std::move(quanter));
}

inline TrainableModel QAT::quantize(const Model& model) const {
  Model prepared = prepare_for_quantization(model);
  QuantConfig config = config_.config;
  if (!config.global.weight_bits) config.global.weight_bits = config_.weight_bits;
  if (!config.global.activation_bits) config.global.activation_bits = config_.activation_bits;
  // As with observers, what begins with channel_wise has a scale for each channel.
  config.default_weight_observer = config_.weight_quantize_type;
  config.default_activation_observer = config_.activation_quantize_type;
  for (const std::string& layer : config_.quantizable_layer_type) {
    const std::vector<std::string> types = QuantedLayer::op_types_of_layer(layer);
    config.quantizable_op_type.insert(config.quantizable_op_type.end(), types.begin(), types.end());
    if (types.empty()) config.quantizable_op_type.push_back(layer);
  }
  for (const auto& [type, target] : mapping_) config.quantizable_op_type.push_back(type);
  // A type that the model does not have is no mistake here: these are defaults.
  std::erase_if(config.quantizable_op_type, [&](const std::string& type) {
    for (const Node& node : prepared.graph.nodes) {
      if (node.op_type == type) return false;
      const bool joins = node.op_type == "AllReduce" || node.op_type == "AllGather";
      if (joins && type.ends_with("ParallelLinear")) return false;
    }
    return true;
  });
  if (config.quantizable_op_type.empty()) {  // which would mean all types
    throw Error(
        ErrorKind::Unsupported,
        "the model has no layer of the types in quantizable_layer_type, or that were mapped: "
        "there is nothing to quantise");
  }
  QuantPlan plan = make_plan(prepared, config);
  const QuanterMaker maker = [this](const std::string& op_type, const std::string&,
                                    const QuanterSetup& setup) { return make(op_type, setup); };
  std::unique_ptr<Trainable> trainable(open_trainable(prepared, plan, maker, context_));
  return {std::move(prepared), std::move(plan), std::move(trainable)};
}

}  // namespace quench
