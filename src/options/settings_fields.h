// SPDX-License-Identifier: Apache-2.0
// The fields of QuantizeOptions, named once: `list_fields` shows each to a visitor, which writes or
// reads it. A new field of the options needs its line here, or running the settings again gives
// other bytes.
#pragma once

#include "quench/options.h"

namespace quench {

/// Words for the values of an enum, in the order of its values.
using Words = std::vector<std::string>;

template <typename Visitor>
void list_fields(Visitor& visit, ImageSize& size) {
  visit("width", size.width);
  visit("height", size.height);
}

template <typename Visitor>
void list_fields(Visitor& visit, ImageOptions& image) {
  visit.word("color", image.color, Words{"RGB", "BGR", "GRAY"});
  visit("resize", image.resize);
  visit("resize_shorter", image.resize_shorter);
  visit("resize_fit", image.resize_fit);
  visit.word("method", image.method, Words{"LINEAR", "NEAREST", "CUBIC"});
  visit("center_crop", image.center_crop);
  visit("mean", image.mean);
  visit("std", image.std);
  visit.word("normalize", image.normalize, Words{"last", "first"});
}

template <typename Visitor>
void list_fields(Visitor& visit, DataOptions& data) {
  visit("path", data.path);
  visit("limit", data.limit);
  visit.word("kind", data.kind, Words{"auto", "image", "bin"});
  visit.word("bin_layout", data.bin_layout, Words{"unsaid", "input", "NHWC"});
  visit("image", data.image);
}

template <typename Visitor>
void list_fields(Visitor& visit, QuantRule& rule) {
  visit("activation_observer", rule.activation_observer);
  visit("weight_observer", rule.weight_observer);
  visit("activation_bits", rule.activation_bits);
  visit("weight_bits", rule.weight_bits);
  visit("per_channel", rule.per_channel);
  visit("skip", rule.skip);
}

template <typename Visitor>
void list_fields(Visitor& visit, QuantConfig& config) {
  visit("target", config.target);
  visit("isa", config.isa);
  visit("global", config.global);
  visit("by_layer", config.by_layer);
  visit("by_name", config.by_name);
  visit("by_type", config.by_type);
  visit("skip_quant_node", config.skip_quant_node);
  visit("skip_tensor_list", config.skip_tensor_list);
  visit("quantizable_op_type", config.quantizable_op_type);
  visit("default_activation_observer", config.default_activation_observer);
  visit("default_weight_observer", config.default_weight_observer);
  visit("value_observers", config.value_observers);
  visit("hist_percent", config.hist_percent);
  visit("bins", config.bins);
}

template <typename Visitor>
void list_fields(Visitor& visit, WeightQuantOptions& weight) {
  visit("bits", weight.bits);
  visit("init_scale", weight.init_scale);
  visit("auto_tune", weight.auto_tune);
  visit("cosine_target", weight.cosine_target);
  visit("max_iterations", weight.max_iterations);
  visit("size_target", weight.size_target);
  visit("enable_encode", weight.enable_encode);
  visit("max_segments", weight.max_segments);
  visit.word("dequant_strategy", weight.dequant_strategy, Words{"at_load", "on_the_fly"});
  visit("per_channel", weight.per_channel);
  visit("symmetric", weight.symmetric);
  visit("group_size", weight.group_size);
  visit("bias_correction", weight.bias_correction);
  visit("observer", weight.observer);
  visit("gptq", weight.gptq);
}

template <typename Visitor>
void list_fields(Visitor& visit, DynamicQuantOptions& dynamic) {
  visit.word("quant_strategy", dynamic.quant_strategy, Words{"ALWC", "ACWL"});
}

template <typename Visitor>
void list_fields(Visitor& visit, QuantizeOptions& options) {
  visit.word("type", options.type, Words{"none", "full", "weight", "dynamic"});
  visit("config", options.config);
  visit("weight", options.weight);
  visit("dynamic", options.dynamic);
  visit("data", options.data);
  visit("statistics", options.statistics);
  visit("batch", options.batch);
  visit("held_out", options.held_out);
  visit("bias_correction", options.bias_correction);
  visit.word("correction", options.correction, Words{"fast", "full", "auto"});
  visit("correction_samples", options.correction_samples);
  visit.word("equalization", options.equalization, Words{"never", "always", "auto"});
  visit("qoperator", options.qoperator);
  visit("input_shapes", options.input_shapes);
  visit("min_quant_weight_size", options.min_quant_weight_size);
  visit("min_quant_weight_channel", options.min_quant_weight_channel);
}

}  // namespace quench
