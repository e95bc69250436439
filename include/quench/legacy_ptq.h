// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's legacy `PTQ(activation_quantizer, weight_quantizer)`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quench/ptq.h"

namespace quench {

/// A quantiser of PaddleSlim's legacy interface.
struct LegacyQuantizer {
  std::string observer;
  int quant_bits = 8;
  int bins = 1024;
  double hist_percent = 0.99999;
  /// Changes nothing: histograms are merged without loss here.
  int upsample_bins = 64;
};
struct KLQuantizer : LegacyQuantizer {
  explicit KLQuantizer(int bits = 8, int num_bins = 1024, int upsampled = 64);
};
struct HistQuantizer : LegacyQuantizer {
  explicit HistQuantizer(int bits = 8, int num_bins = 1024, int upsampled = 64,
                         double percent = 0.99999);
};
struct AbsmaxQuantizer : LegacyQuantizer {
  explicit AbsmaxQuantizer(int bits = 8);
};
/// For weights.
struct PerChannelAbsmaxQuantizer : LegacyQuantizer {
  explicit PerChannelAbsmaxQuantizer(int bits = 8);
};
/// By name, with default settings; throws Error(Usage) with the nearest.
LegacyQuantizer legacy_quantizer(std::string_view name);
/// The configuration that legacy quantisers stand for. Throws Error(Usage) where one cannot do what
/// it is asked to: KL and Hist take activations, PerChannelAbsmax weights, Absmax both.
QuantConfig legacy_config(const LegacyQuantizer& activation = KLQuantizer(),
                          const LegacyQuantizer& weight = PerChannelAbsmaxQuantizer());

/// `paddleslim.PTQ`: as PTQ, but BatchNormalization is folded only where it is asked for, and
/// Paddle programs are saved in their old form.
class LegacyPTQ {
 public:
  explicit LegacyPTQ(const LegacyQuantizer& activation_quantizer = KLQuantizer(),
                     const LegacyQuantizer& weight_quantizer = PerChannelAbsmaxQuantizer(),
                     Context context = {})
      : ptq_(legacy_config(activation_quantizer, weight_quantizer), std::move(context)) {}

  ObservedModel quantize(const Model& model, bool fuse = false,
                         std::vector<std::vector<std::string>> fuse_list = {}) const {
    return ptq_.quantize(model, {.fuse = fuse, .fuse_list = std::move(fuse_list)});
  }
  Model convert(const ObservedModel& observed) const { return ptq_.convert(observed); }
  void save_quantized_model(const ObservedModel& observed, const std::string& path,
                            const InputShapes& input_spec = {}) const;

 private:
  PTQ ptq_;
};

}  // namespace quench
