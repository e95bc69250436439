// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's QuantConfig, and its observers as classes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quench/quant_config.h"

namespace quench {

/// How a range is chosen, and the bits that stand for it: by one of the classes below, or by the
/// name of an observer.
struct Observer {
  // NOLINTBEGIN(google-explicit-constructor): a name is meant to do where an observer is asked for
  Observer(const char* the_name) : name(the_name) {}
  Observer(std::string the_name) : name(std::move(the_name)) {}
  // NOLINTEND(google-explicit-constructor)
  Observer(std::string the_name, int bits) : name(std::move(the_name)), quant_bits(bits) {}

  std::string name;
  int quant_bits = 8;
  std::optional<int> bins_count;
  std::optional<double> percent;
};

struct AbsmaxObserver : Observer {
  explicit AbsmaxObserver(int bits = 8) : Observer("abs_max", bits) {}
};
struct AVGObserver : Observer {
  explicit AVGObserver(int bits = 8) : Observer("avg", bits) {}
};
struct MSEObserver : Observer {
  explicit MSEObserver(int bits = 8) : Observer("mse", bits) {}
};
struct EMDObserver : Observer {
  explicit EMDObserver(int bits = 8) : Observer("emd", bits) {}
};
/// Keeps `share` of the values. Whether a scale is symmetric is the target's to say.
struct HistObserver : Observer {
  explicit HistObserver(int bits = 8, int bins = 2048, double share = 0.999)
      : Observer("hist", bits) {
    bins_count = bins;
    percent = share;
  }
};
struct KLObserver : Observer {
  explicit KLObserver(int bits = 8, int bins = 2048) : Observer("KL", bits) { bins_count = bins; }
};
/// For weights: a scale for each output channel.
struct AbsMaxChannelWiseWeightObserver : Observer {
  explicit AbsMaxChannelWiseWeightObserver(int bits = 8) : Observer("channel_wise_abs_max", bits) {}
};
struct MSEChannelWiseWeightObserver : Observer {
  explicit MSEChannelWiseWeightObserver(int bits = 8) : Observer("channel_wise_mse", bits) {}
};

namespace paddleslim {

/// A configuration made as PaddleSlim's is. Without an observer of activations only weights are
/// quantised, without one of weights only activations, without both nothing.
class QuantConfig : public quench::QuantConfig {
 public:
  using Names = std::vector<std::string>;
  using Setting = std::optional<Observer>;

  QuantConfig(const Setting& activation, const Setting& weight);
  /// By the names of layers; by names, which may be globs; by operator types as Paddle or ONNX
  /// calls them (Conv2D, conv2d, Conv). All `hist` observers keep one share, all histograms have
  /// one number of bins: another one is an Error(Usage).
  void add_layer_config(const Names& layers, const Setting& activation, const Setting& weight);
  void add_name_config(const Names& names, const Setting& activation, const Setting& weight);
  void add_type_config(const Names& types, const Setting& activation, const Setting& weight);

 private:
  QuantRule rule_of(const Setting& activation, const Setting& weight);
  void set_histogram(const Observer& observer);

  std::optional<double> percent_;
  std::optional<int> bins_count_;
};

}  // namespace paddleslim
}  // namespace quench
